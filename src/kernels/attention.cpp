// Multi-head scaled dot-product attention, one head of one sequence at a time. P: weights, M: P after dropout
// f.
//   forward    S = scale Q K^T - slope |i - j|,  P = softmax of each row over its visible keys,  M = P f,  O
//   = M V backward   dV += M^T dO,  dM = dO V^T,  dP = dM f,  dS_ij = P_ij (dP_ij - sum_l dP_il P_il),
//              dQ += scale dS K,  dK += scale dS^T Q; where scores come from elsewhere, dS is their gradient
//   saved: P, and f and M where there is dropout. P is 0 on hidden keys, and so is dS.
#include "thimble/kernels/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cpp"
#include <hwy/foreach_target.h>

#include "kernels/product-inl.h"
#include "kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE {

// The block of one head of one sequence.
template <class View>
View block(View x, std::int64_t sequence, std::int64_t length, std::int64_t head, std::int64_t heads) {
  const std::int64_t columns = x.cols / heads;
  return x.row_block(sequence * length, length).column_block(head * columns, columns);
}

// The block of k or v that a head reads.
template <class View>
View shared_block(View x, std::int64_t sequence, std::int64_t head, const AttentionSizes& s) {
  return block(x, sequence, s.keys, head / s.heads_per_kv_head(), s.kv_heads);
}

// The same of dk or dv: the first head of a group fills what is empty, the others add.
GradientView shared_block(GradientView x, std::int64_t sequence, std::int64_t head, const AttentionSizes& s) {
  x.uninitialized = x.uninitialized && head % s.heads_per_kv_head() == 0;
  return block(x, sequence, s.keys, head / s.heads_per_kv_head(), s.kv_heads);
}

template <class View>
View weights_block(View weights, std::int64_t sequence, std::int64_t head, const AttentionSizes& s) {
  return weights.row_block((sequence * s.heads + head) * s.queries, s.queries);
}

// p = softmax over the visible keys of x, which may be p, of one head of one sequence.
HWY_INLINE void masked_softmax(MatrixView p, ConstMatrixView x, std::int64_t sequence, std::int64_t head,
                               const AttentionMask& mask) {
  for (std::int64_t i = 0; i < p.rows; ++i) {
    const std::int64_t visible = mask.visible(sequence, i, p.cols);
    const Real* from = x.row(i);
    if (!mask.slopes.empty()) {
      const Real slope = mask.slopes[static_cast<std::size_t>(head)];
      for (std::int64_t j = 0; j < visible; ++j)
        p.row(i)[j] = from[j] - slope * static_cast<Real>(std::abs(mask.first_query + i - j));
      from = p.row(i);
    }
    if (visible > 0) softmax_row(p.row(i), from, visible);
    std::fill(p.row(i) + visible, p.row(i) + p.cols, Real{0});
  }
}

void attention_weights_forward(MatrixView weights, ConstMatrixView q, ConstMatrixView k, Real* scratch,
                               const AttentionSizes& s, const AttentionMask& mask, Real scale) {
  const std::int64_t depth = q.cols / s.heads;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const ConstMatrixView qh = block(q, b, s.queries, h, s.heads), kh = shared_block(k, b, h, s);
      const MatrixView p = weights_block(weights, b, h, s);
      if (h % s.heads_per_kv_head() == 0) transpose(scratch, kh.data, kh.stride, s.keys, depth);
      product<Store::overwrite>(p.data, p.stride, {qh.data, qh.stride, 1}, scratch, s.keys, s.queries, s.keys,
                                depth, scale);
      masked_softmax(p, p, b, h, mask);
    }
  }
}

void attention_softmax_forward(MatrixView weights, ConstMatrixView scores, const AttentionSizes& s,
                               const AttentionMask& mask) {
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h)
      masked_softmax(weights_block(weights, b, h, s), weights_block(scores, b, h, s), b, h, mask);
  }
}

void attention_mix_forward(MatrixView out, ConstMatrixView weights, ConstMatrixView v,
                           const AttentionSizes& s) {
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const ConstMatrixView vh = shared_block(v, b, h, s), p = weights_block(weights, b, h, s);
      const MatrixView o = block(out, b, s.queries, h, s.heads);
      product<Store::overwrite>(o.data, o.stride, {p.data, p.stride, 1}, vh.data, vh.stride, s.queries,
                                o.cols, s.keys, 1);
    }
  }
}

// c += alpha A B.
void add_product(GradientView c, Left a, ConstMatrixView b, Real alpha) {
  const auto multiply = c.uninitialized ? product<Store::overwrite> : product<Store::add>;
  multiply(c.data, c.stride, a, b.data, b.stride, c.rows, c.cols, b.rows, alpha);
}

// ds = p (f dm - row sums of f dm p), in place of dm.
void softmax_gradient(MatrixView dm, ConstMatrixView p, ConstMatrixView f) {
  for (std::int64_t i = 0; i < dm.rows; ++i) {
    Real* g = dm.row(i);
    if (f.data != nullptr) {
      lanes(dm.cols, [g, factor = f.row(i)](auto d, std::int64_t j) HWY_ATTR {
        hn::StoreU(hn::Mul(hn::LoadU(d, g + j), hn::LoadU(d, factor + j)), d, g + j);
      });
    }
    const Real mean = dot(g, p.row(i), dm.cols);
    lanes(dm.cols, [g, mean, weight = p.row(i)](auto d, std::int64_t j) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(d, weight + j), hn::Sub(hn::LoadU(d, g + j), hn::Set(d, mean))), d, g + j);
    });
  }
}

// ds, of one head of one sequence.
HWY_INLINE void score_gradient(MatrixView ds, ConstMatrixView go, const Real* v_transposed,
                               std::int64_t width, ConstMatrixView p, ConstMatrixView f) {
  product<Store::overwrite>(ds.data, ds.stride, {go.data, go.stride, 1}, v_transposed, ds.cols, ds.rows,
                            ds.cols, width, 1);
  softmax_gradient(ds, p, f);
}

// Calls with_scores(sequence, head, dS) for every head, after adding to dv. Without `scores` it stops at dv.
template <class WithScores>
HWY_INLINE void each_score_gradient(GradientView dv, ConstMatrixView dout, ConstMatrixView v,
                                    ConstMatrixView weights, ConstMatrixView mixed, ConstMatrixView dropout,
                                    Real* scratch, const AttentionSizes& s, bool scores,
                                    const WithScores& with_scores) {
  const std::int64_t width = v.cols / s.kv_heads;
  Real* v_transposed = scratch;
  const MatrixView ds{scratch + width * s.keys, s.queries, s.keys, s.keys};
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const ConstMatrixView go = block(dout, b, s.queries, h, s.heads), m = weights_block(mixed, b, h, s);
      if (dv.data != nullptr) add_product(shared_block(dv, b, h, s), {m.data, 1, m.stride}, go, 1);
      if (!scores) continue;
      const ConstMatrixView vh = shared_block(v, b, h, s);
      if (h % s.heads_per_kv_head() == 0) transpose(v_transposed, vh.data, vh.stride, s.keys, width);
      const ConstMatrixView factor = dropout.data == nullptr ? dropout : weights_block(dropout, b, h, s);
      score_gradient(ds, go, v_transposed, width, weights_block(weights, b, h, s), factor);
      with_scores(b, h, ds);
    }
  }
}

void attention_backward(GradientView dq, GradientView dk, GradientView dv, ConstMatrixView dout,
                        ConstMatrixView q, ConstMatrixView k, ConstMatrixView v, ConstMatrixView weights,
                        ConstMatrixView mixed, ConstMatrixView dropout, Real* scratch,
                        const AttentionSizes& s, Real scale) {
  const bool scores = dq.data != nullptr || dk.data != nullptr;
  each_score_gradient(dv, dout, v, weights, mixed, dropout, scratch, s, scores, [&](auto b, auto h, auto ds) {
    if (dq.data != nullptr) {
      add_product(block(dq, b, s.queries, h, s.heads), {ds.data, ds.stride, 1}, shared_block(k, b, h, s),
                  scale);
    }
    if (dk.data != nullptr) {
      add_product(shared_block(dk, b, h, s), {ds.data, 1, ds.stride}, block(q, b, s.queries, h, s.heads),
                  scale);
    }
  });
}

void attention_softmax_backward(GradientView dscores, GradientView dv, ConstMatrixView dout,
                                ConstMatrixView v, ConstMatrixView weights, ConstMatrixView mixed,
                                ConstMatrixView dropout, Real* scratch, const AttentionSizes& s) {
  each_score_gradient(dv, dout, v, weights, mixed, dropout, scratch, s, dscores.data != nullptr,
                      [&](auto b, auto h, auto ds) {
                        const GradientView sum = weights_block(dscores, b, h, s);
                        for (std::int64_t i = 0; i < s.queries; ++i) {
                          for (std::int64_t j = 0; j < s.keys; ++j)
                            sum.row(i)[j] = ds.row(i)[j] + (sum.uninitialized ? 0 : sum.row(i)[j]);
                        }
                      });
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble::inline THIMBLE_PRECISION::kernels {

HWY_EXPORT(attention_weights_forward);
HWY_EXPORT(attention_softmax_forward);
HWY_EXPORT(attention_mix_forward);
HWY_EXPORT(attention_backward);
HWY_EXPORT(attention_softmax_backward);

void attention_weights_forward(MatrixView weights, ConstMatrixView q, ConstMatrixView k, Real* scratch,
                               const AttentionSizes& sizes, const AttentionMask& mask, Real scale) {
  HWY_DYNAMIC_DISPATCH(attention_weights_forward)(weights, q, k, scratch, sizes, mask, scale);
}
void attention_softmax_forward(MatrixView weights, ConstMatrixView scores, const AttentionSizes& sizes,
                               const AttentionMask& mask) {
  HWY_DYNAMIC_DISPATCH(attention_softmax_forward)(weights, scores, sizes, mask);
}
void attention_mix_forward(MatrixView out, ConstMatrixView weights, ConstMatrixView v,
                           const AttentionSizes& sizes) {
  HWY_DYNAMIC_DISPATCH(attention_mix_forward)(out, weights, v, sizes);
}
void attention_backward(GradientView dq, GradientView dk, GradientView dv, ConstMatrixView dout,
                        ConstMatrixView q, ConstMatrixView k, ConstMatrixView v, ConstMatrixView weights,
                        ConstMatrixView mixed, ConstMatrixView dropout, Real* scratch,
                        const AttentionSizes& sizes, Real scale) {
  HWY_DYNAMIC_DISPATCH(attention_backward)
  (dq, dk, dv, dout, q, k, v, weights, mixed, dropout, scratch, sizes, scale);
}
void attention_softmax_backward(GradientView dscores, GradientView dv, ConstMatrixView dout,
                                ConstMatrixView v, ConstMatrixView weights, ConstMatrixView mixed,
                                ConstMatrixView dropout, Real* scratch, const AttentionSizes& sizes) {
  HWY_DYNAMIC_DISPATCH(attention_softmax_backward)
  (dscores, dv, dout, v, weights, mixed, dropout, scratch, sizes);
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
#endif  // HWY_ONCE
