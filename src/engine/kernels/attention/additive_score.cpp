// Additive scores, one head of one sequence at a time. With tanh x = 1 - 2 r, r = 1 / (1 + e^2x), and
// e^2(a+b) = e^2a e^2b, only q and k need exponentials; each of the Tq Tk D numbers, none of which is stored,
// needs a product and a reciprocal.
//   forward    s_ij = sum_d w_d tanh(q_id + k_jd) = sum_d w_d - 2 sum_d w_d r_ijd
//   backward   with u = 1 - tanh^2 = 4 (r - r^2):  dq_id += w_d sum_j ds_ij u_ijd,
//              dk_jd += w_d sum_i ds_ij u_ijd,     dw_d += sum_ij ds_ij tanh(q_id + k_jd)
//   saved: nothing but q, k and w
#include "engine/kernels/attention/additive_score.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/attention/additive_score.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/attention/blocks.h"
#include "engine/kernels/exp-inl.h"
#include "engine/kernels/products/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

// The largest |2x| for which the product of two powers e^2x, and its reciprocal, are normal numbers.
constexpr Real kMaxExponent = sizeof(Real) == sizeof(double) ? 350 : 43;

// The form in which q and k are combined: powers e^2x, which are multiplied, or, where an exponent of the
// head is too large for that, exponents 2x, which are added before the power is computed.
enum class Form { powers, exponents };

// Writes e^2x, row by row without gaps, and returns whether no exponent is too large.
HWY_INLINE bool take_powers(Real* to, ConstMatrixView x) {
  bool fits = true;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    lanes(x.cols, [&, from = x.row(r)](auto d, std::int64_t i) HWY_ATTR {
      const auto exponent = hn::Mul(hn::Set(d, 2), load(d, from + i));
      fits &= hn::AllFalse(d, hn::Gt(hn::Abs(exponent), hn::Set(d, kMaxExponent)));
      store(exp_up_to_88(d, exponent), d, to + r * x.cols + i);
    });
  }
  return fits;
}

// Writes 2x, row by row without gaps.
HWY_INLINE void take_exponents(Real* to, ConstMatrixView x) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    lanes(x.cols, [&, from = x.row(r)](auto d, std::int64_t i)
                      HWY_ATTR { store(hn::Mul(hn::Set(d, 2), load(d, from + i)), d, to + r * x.cols + i); });
  }
}

// Writes q to a and k to b in the form that is returned.
HWY_INLINE Form prepare(Real* a, Real* b, ConstMatrixView q, ConstMatrixView k) {
  if (take_powers(a, q) && take_powers(b, k)) return Form::powers;
  take_exponents(a, q);
  take_exponents(b, k);
  return Form::exponents;
}

// Returns 1 / x for 1 <= x <= 2^125. In float, an estimate from the bits of x, which subtracts the exponent, and two
// steps of Newton's method, of third and second order, are faster than a division: relative error 1.4e-7.
template <class D, class V>
HWY_INLINE V reciprocal(D d, V x) {
#ifdef THIMBLE_DOUBLE
  return hn::Div(hn::Set(d, 1), x);
#else
  const hn::RebindToUnsigned<D> bits;
  const auto one = hn::Set(d, 1);
  auto y = hn::BitCast(d, hn::Sub(hn::Set(bits, 0x7ef31000), hn::BitCast(bits, x)));
  auto error = hn::NegMulAdd(x, y, one);
  y = hn::MulAdd(y, hn::MulAdd(error, error, error), y);
  error = hn::NegMulAdd(x, y, one);
  return hn::MulAdd(y, error, y);
#endif
}

// Returns r = 1 / (1 + e^2(q + k)).
template <Form kForm, class D, class V>
HWY_INLINE V r_of(D d, V a, V b) {
  const auto one = hn::Set(d, 1);
  if constexpr (kForm == Form::powers) {
    return reciprocal(d, hn::MulAdd(a, b, one));
  } else {
    const auto limit = hn::Set(d, 2 * kMaxExponent), sum = hn::Add(a, b);
    const auto exponent = hn::IfThenElse(
        hn::Gt(hn::Abs(sum), limit), hn::IfThenElse(hn::Lt(sum, hn::Zero(d)), hn::Neg(limit), limit), sum);
    return reciprocal(d, hn::Add(exp_up_to_88(d, exponent), one));
  }
}

// Computes N vectors of scores of one query. b is (D, Tk).
template <Form kForm, int N, class D>
HWY_INLINE void score_tile(D d, Real* to, const Real* a, const Real* b, std::int64_t keys, const Real* weight,
                           Real total, std::int64_t d_key) {
  decltype(hn::Zero(d)) sum[N];
  for (int n = 0; n < N; ++n) sum[n] = hn::Zero(d);
  for (std::int64_t p = 0; p < d_key; ++p) {
    const auto query = hn::Set(d, a[p]), w = hn::Set(d, weight[p]);
    for (int n = 0; n < N; ++n) {
      const auto key = load(d, b + p * keys + n * width(d));
      sum[n] = hn::MulAdd(w, r_of<kForm>(d, query, key), sum[n]);
    }
  }
  for (int n = 0; n < N; ++n)
    store(hn::NegMulAdd(hn::Set(d, 2), sum[n], hn::Set(d, total)), d, to + n * width(d));
}

template <Form kForm>
void score_rows(MatrixView scores, const Real* a, const Real* b, const Real* weight, std::int64_t d_key) {
  const Wide wide;
  const std::int64_t keys = scores.cols;
  Real total = 0;
  for (std::int64_t p = 0; p < d_key; ++p) total += weight[p];
  for (std::int64_t i = 0; i < scores.rows; ++i) {
    Real* row = scores.row(i);
    const Real* query = a + i * d_key;
    std::int64_t j = 0;
    for (; j + 2 * width(wide) <= keys; j += 2 * width(wide))
      score_tile<kForm, 2>(wide, row + j, query, b + j, keys, weight, total, d_key);
    lanes(keys - j, [&](auto d, std::int64_t l) HWY_ATTR {
      score_tile<kForm, 1>(d, row + j + l, query, b + j + l, keys, weight, total, d_key);
    });
  }
}

// For M queries, all keys and one vector of columns: writes sum_j ds (r - r^2) to the rows of a, adds
// sum_i ds (r - r^2) to the rows of sum_k, and returns sum_ij ds r.
template <Form kForm, int M, class D>
HWY_INLINE auto gradient_tile(D d, Real* a, const Real* b, Real* sum_k, ConstMatrixView ds,
                              std::int64_t d_key) {
  decltype(hn::Zero(d)) query[M], sum_q[M], sum_r[M];
  for (int m = 0; m < M; ++m) {
    query[m] = load(d, a + m * d_key);
    sum_q[m] = sum_r[m] = hn::Zero(d);
  }
  for (std::int64_t j = 0; j < ds.cols; ++j) {
    const auto key = load(d, b + j * d_key);
    auto sum = load(d, sum_k + j * d_key);
    for (int m = 0; m < M; ++m) {
      const auto g = hn::Set(d, ds.row(m)[j]), r = r_of<kForm>(d, query[m], key);
      const auto derivative = hn::NegMulAdd(r, r, r);
      sum_r[m] = hn::MulAdd(g, r, sum_r[m]);
      sum_q[m] = hn::MulAdd(g, derivative, sum_q[m]);
      sum = hn::MulAdd(g, derivative, sum);
    }
    store(sum, d, sum_k + j * d_key);
  }
  for (int m = 0; m < M; ++m) store(sum_q[m], d, a + m * d_key);
  for (int m = 1; m < M; ++m) sum_r[0] = hn::Add(sum_r[0], sum_r[m]);
  return sum_r[0];
}

template <Form kForm, int M>
HWY_INLINE void gradient_panel(Real* a, const Real* b, Real* sum_k, Real* shares, ConstMatrixView ds,
                               std::int64_t d_key) {
  lanes(d_key, [=](auto d, std::int64_t c) HWY_ATTR {
    add_to(d, shares + c, gradient_tile<kForm, M>(d, a + c, b + c, sum_k + c, ds, d_key), false);
  });
}

template <Form kForm>
void gradient_rows(Real* a, const Real* b, Real* sum_k, Real* shares, ConstMatrixView ds,
                   std::int64_t d_key) {
  std::int64_t i = 0;
  for (; i + 4 <= ds.rows; i += 4)
    gradient_panel<kForm, 4>(a + i * d_key, b, sum_k, shares, ds.row_block(i, 4), d_key);
  for (; i < ds.rows; ++i)
    gradient_panel<kForm, 1>(a + i * d_key, b, sum_k, shares, ds.row_block(i, 1), d_key);
}

// Adds 4 w sum.
void add_gradient(MatrixView to, const Real* sum, const Real* weight) {
  for (std::int64_t r = 0; r < to.rows; ++r) {
    lanes(to.cols, [row = to.row(r), from = sum + r * to.cols, weight](auto d, std::int64_t c) HWY_ATTR {
      const auto factor = hn::Mul(hn::Set(d, 4), load(d, weight + c));
      store(hn::MulAdd(factor, load(d, from + c), load(d, row + c)), d, row + c);
    });
  }
}

// Adds to dw sum ds tanh = sum ds - 2 sum ds r.
void add_weight_gradient(Real* to, const Real* shares, ConstMatrixView ds, std::int64_t d_key) {
  Real total = 0;
  for (std::int64_t i = 0; i < ds.rows; ++i)
    total += sum_lanes(ds.cols, [row = ds.row(i)](auto d, std::int64_t j, auto sum)
                                    HWY_ATTR { return hn::Add(sum, load(d, row + j)); });
  lanes(d_key, [=](auto d, std::int64_t c) HWY_ATTR {
    add_to(d, to + c, hn::NegMulAdd(hn::Set(d, 2), load(d, shares + c), hn::Set(d, total)), false);
  });
}

void additive_score_forward(MatrixView scores, ConstMatrixView q, ConstMatrixView k, ConstMatrixView weight,
                            Real* scratch, const AttentionSizes& s) {
  const std::int64_t d_key = weight.cols;
  Real *a = scratch, *b = a + s.queries * d_key, *b_transposed = b + s.keys * d_key;
  each_head(s, [=](std::int64_t sequence, std::int64_t head) HWY_ATTR {
    const Form form =
        prepare(a, b, block(q, sequence, s.queries, head, s.heads), kv_block(k, sequence, head, s));
    transpose(b_transposed, s.keys, b, d_key, s.keys, d_key);
    const auto score = form == Form::powers ? score_rows<Form::powers> : score_rows<Form::exponents>;
    score(weights_block(scores, sequence, head, s), a, b_transposed, weight.row(head), d_key);
  });
}

void additive_score_backward(MatrixView dq, MatrixView dk, MatrixView dweight, ConstMatrixView dscores,
                             ConstMatrixView q, ConstMatrixView k, ConstMatrixView weight, Real* scratch,
                             const AttentionSizes& s) {
  const std::int64_t d_key = weight.cols;
  Real *a = scratch, *b = a + s.queries * d_key, *sum_k = b + s.keys * d_key;
  Real* shares = sum_k + s.keys * d_key;
  each_head(s, [=](std::int64_t sequence, std::int64_t head) HWY_ATTR {
    const ConstMatrixView ds = weights_block(dscores, sequence, head, s);
    const Form form =
        prepare(a, b, block(q, sequence, s.queries, head, s.heads), kv_block(k, sequence, head, s));
    std::fill(sum_k, shares + d_key, Real{0});
    const auto add_up = form == Form::powers ? gradient_rows<Form::powers> : gradient_rows<Form::exponents>;
    add_up(a, b, sum_k, shares, ds, d_key);
    if (dq.data != nullptr) add_gradient(block(dq, sequence, s.queries, head, s.heads), a, weight.row(head));
    if (dk.data != nullptr) add_gradient(kv_block(dk, sequence, head, s), sum_k, weight.row(head));
    if (dweight.data != nullptr) add_weight_gradient(dweight.row(head), shares, ds, d_key);
  });
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, additive_score_forward,
                 (MatrixView scores, ConstMatrixView q, ConstMatrixView k, ConstMatrixView weight,
                  Real* scratch, const AttentionSizes& sizes),
                 scores, q, k, weight, scratch, sizes)
THIMBLE_DISPATCH(void, additive_score_backward,
                 (MatrixView dq, MatrixView dk, MatrixView dweight, ConstMatrixView dscores,
                  ConstMatrixView q, ConstMatrixView k, ConstMatrixView weight, Real* scratch,
                  const AttentionSizes& sizes),
                 dq, dk, dweight, dscores, q, k, weight, scratch, sizes)
