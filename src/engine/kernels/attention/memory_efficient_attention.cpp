// Attention of a block R of queries of one head of one sequence at a time, with the symbols of attention.cpp.
//   forward    P_R = softmax of each row of scale Q_R K^T - slope |i - j| over its visible keys,
//              O_R = (P_R f_R) V
//   backward   P_R again, then  dV += (P_R f_R)^T dO_R,  dS_R from P_R and dP_R = (dO_R V^T) f_R,
//              dQ_R += scale dS_R K,  dK += scale dS_R^T Q_R
//   saved: nothing but q, k and v
// Keys that no query of a block attends to are left out: they would add zero. Sums over keys or queries
// continue from block to block, one chain of multiply-adds, so all bits are those of attention.cpp.
#include "engine/kernels/attention/memory_efficient_attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/attention/memory_efficient_attention.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/attention/attention-inl.h"
#include "engine/kernels/attention/blocks.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

// Calls f(sequence, head, block, P_R, f_R) for every block of queries; without dropout, f_R has no data.
template <class F>
HWY_INLINE void each_weights(ConstMatrixView q, ConstMatrixView k, Real* scratch, const AttentionSizes& s,
                             const AttentionMask& mask, Real scale, const WeightsDropout& dropout,
                             const F& f) {
  Real *const scaled_keys = scratch, *const weights = scaled_keys + s.d_key * s.keys,
              *const factors = weights + kQueryBlock * s.keys;
  each_head(s, [&](std::int64_t b, std::int64_t h) HWY_ATTR {
    if (h % s.heads_per_kv_head() == 0) {
      const ConstMatrixView kh = kv_block(k, b, h, s);
      transpose(scaled_keys, s.keys, kh.data, kh.stride, s.keys, s.d_key);
      multiply_by(scaled_keys, scale, s.keys * s.d_key);
    }
    const ConstMatrixView qh = block(q, b, s.queries, h, s.heads);
    each_query_block(s, mask, b, [&](const QueryBlock& r) HWY_ATTR {
      const MatrixView p{weights, r.rows, r.keys, r.keys};
      weights_of(p, qh.row_block(r.first, r.rows), scaled_keys, b, h, s, r.mask);
      const MatrixView factor{dropout.key ? factors : nullptr, r.rows, r.keys, r.keys};
      for (std::int64_t i = 0; dropout.key && i < r.rows; ++i)
        sample_dropout_factors(factor.row(i), dropout.probability, *dropout.key, b,
                               (h * s.queries + r.first + i) * s.keys, r.keys);
      f(b, h, r, p, factor);
    });
  });
}

void memory_efficient_forward(MatrixView out, ConstMatrixView q, ConstMatrixView k, ConstMatrixView v,
                              Real* scratch, const AttentionSizes& s, const AttentionMask& mask, Real scale,
                              const WeightsDropout& dropout) {
  const auto apply = [&](std::int64_t b, std::int64_t h, const QueryBlock& r, MatrixView p,
                         ConstMatrixView factor) HWY_ATTR {
    if (factor.data != nullptr) mul_forward(p, p, factor);
    const MatrixView o = block(out, b, s.queries, h, s.heads).row_block(r.first, r.rows);
    add_product({o, true}, {p.data, p.stride, 1}, kv_block(v, b, h, s).row_block(0, r.keys));
  };
  each_weights(q, k, scratch, s, mask, scale, dropout, apply);
}

// Sets a gradient that is uninitialized to zero, as every block adds to it.
void initialize(GradientView& x) {
  for (std::int64_t i = 0; x.uninitialized && i < x.rows; ++i) std::fill_n(x.row(i), x.cols, Real{0});
  x.uninitialized = false;
}

void memory_efficient_backward(AttentionGradients d, ConstMatrixView dout, AttentionInputs x, Real* scratch,
                               const AttentionSizes& s, const AttentionMask& mask, Real scale,
                               const WeightsDropout& dropout) {
  Real *const score_gradients = scratch + (s.d_key + (dropout.key ? 2 : 1) * kQueryBlock) * s.keys,
              *const v_transposed = score_gradients + kQueryBlock * s.keys;
  for (GradientView* gradient : {&d.q, &d.k, &d.v}) initialize(*gradient);
  const auto backward = [&](std::int64_t b, std::int64_t h, const QueryBlock& r, ConstMatrixView p,
                            ConstMatrixView factor) HWY_ATTR {
    const auto queries = [&](auto all) {
      return block(all, b, s.queries, h, s.heads).row_block(r.first, r.rows);
    };
    const auto keys = [&](auto all) { return kv_block(all, b, h, s).row_block(0, r.keys); };
    const MatrixView ds{score_gradients, r.rows, r.keys, r.keys};
    const ConstMatrixView go = queries(dout), vh = kv_block(x.v, b, h, s);
    if (d.v.data != nullptr) {
      if (factor.data != nullptr) mul_forward(ds, p, factor);
      const ConstMatrixView m = factor.data == nullptr ? p : ds;
      add_product(keys(d.v), {m.data, 1, m.stride}, go);
    }
    if (d.q.data == nullptr && d.k.data == nullptr) return;
    if (r.first == 0 && h % s.heads_per_kv_head() == 0)
      transpose(v_transposed, s.keys, vh.data, vh.stride, s.keys, s.d_value);
    score_gradient(ds, go, v_transposed, p, factor, b, s, r.mask, scale);
    if (d.q.data != nullptr) add_product(queries(d.q), {ds.data, ds.stride, 1}, keys(x.k));
    if (d.k.data != nullptr) add_product(keys(d.k), {ds.data, 1, ds.stride}, queries(x.q));
  };
  each_weights(x.q, x.k, scratch, s, mask, scale, dropout, backward);
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, memory_efficient_forward,
                 (MatrixView out, ConstMatrixView q, ConstMatrixView k, ConstMatrixView v, Real* scratch,
                  const AttentionSizes& sizes, const AttentionMask& mask, Real scale,
                  const WeightsDropout& dropout),
                 out, q, k, v, scratch, sizes, mask, scale, dropout)
THIMBLE_DISPATCH(void, memory_efficient_backward,
                 (AttentionGradients gradients, ConstMatrixView dout, AttentionInputs inputs, Real* scratch,
                  const AttentionSizes& sizes, const AttentionMask& mask, Real scale,
                  const WeightsDropout& dropout),
                 gradients, dout, inputs, scratch, sizes, mask, scale, dropout)

#if HWY_ONCE
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

std::int64_t memory_efficient_scratch(const AttentionSizes& s, bool backward, bool dropout) {
  const std::int64_t blocks = 1 + (backward ? 1 : 0) + (dropout ? 1 : 0);
  return (s.d_key + (backward ? s.d_value : 0) + blocks * kQueryBlock) * s.keys;
}

std::int64_t memory_efficient_scores(const AttentionSizes& s, const AttentionMask& mask) {
  std::int64_t scores = 0;
  for (std::int64_t b = 0; b < s.batch; ++b)
    each_query_block(s, mask, b, [&](const QueryBlock& r) { scores += s.heads * r.rows * r.keys; });
  return scores;
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
#endif  // HWY_ONCE
