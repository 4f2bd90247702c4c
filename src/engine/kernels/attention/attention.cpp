// Multi-head scaled dot-product attention, one head of one sequence at a time. P: weights, f: dropout
// factors.
//   forward    S = scale Q K^T - slope |i - j|,  P = softmax of each row of S over its visible keys,
//              M = P f,  O = M V
//   backward   dV += M^T dO,  dM = dO V^T,  dP = dM f,  dS_ij = P_ij (dP_ij - sum_l dP_il P_il),
//              dQ += scale dS K,  dK += scale dS^T Q;  of given scores S:  dscores += dS
//   without softmax  P = S,  dS = dP
//   saved: P, and with dropout f and M. P and dS are 0 for hidden keys.
#include "engine/kernels/attention/attention.h"

#include <limits>

#include "engine/kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/attention/attention.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/attention/attention-inl.h"
#include "engine/kernels/attention/blocks.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

void attention_weights_forward(MatrixView weights, ConstMatrixView q, ConstMatrixView k, Real* scratch,
                               const AttentionSizes& s, const AttentionMask& mask, Real scale) {
  const std::int64_t d_key = q.cols / s.heads;
  each_head(s, [&](std::int64_t b, std::int64_t h) HWY_ATTR {
    const ConstMatrixView qh = block(q, b, s.queries, h, s.heads), kh = kv_block(k, b, h, s);
    const MatrixView p = weights_block(weights, b, h, s);
    if (h % s.heads_per_kv_head() == 0) {
      transpose(scratch, s.keys, kh.data, kh.stride, s.keys, d_key);
      multiply_by(scratch, scale, s.keys * d_key);
    }
    weights_of(p, qh, scratch, b, h, s, mask);
  });
}

void attention_softmax_forward(MatrixView weights, ConstMatrixView scores, const AttentionSizes& s,
                               const AttentionMask& mask) {
  each_head(s, [&](std::int64_t b, std::int64_t h) HWY_ATTR {
    masked_softmax(weights_block(weights, b, h, s), weights_block(scores, b, h, s), b, h, mask);
  });
}

void attention_apply_forward(MatrixView out, ConstMatrixView weights, ConstMatrixView v,
                             const AttentionSizes& s) {
  each_head(s, [&](std::int64_t b, std::int64_t h) HWY_ATTR {
    const ConstMatrixView vh = kv_block(v, b, h, s), p = weights_block(weights, b, h, s);
    const MatrixView o = block(out, b, s.queries, h, s.heads);
    multiply_small<Store::overwrite>(o.data, o.stride, {p.data, p.stride, 1}, vh.data, vh.stride, s.queries,
                                     o.cols, s.keys);
  });
}

// Returns the block of dk or dv that a head adds to. While it is uninitialized, the first of the heads that
// share it overwrites it.
GradientView shared_gradient(GradientView x, std::int64_t sequence, std::int64_t head,
                             const AttentionSizes& s) {
  x.uninitialized = x.uninitialized && head % s.heads_per_kv_head() == 0;
  return kv_block(x, sequence, head, s);
}

// Adds to dv for every head and, if `scores` is true, calls with_scores(sequence, head, scale dS).
template <class WithScores>
HWY_INLINE void each_score_gradient(GradientView dv, ConstMatrixView dout, ConstMatrixView v,
                                    KeptWeights weights, Real* scratch, const AttentionSizes& s,
                                    const AttentionMask& mask, Real scale, bool scores,
                                    const WithScores& with_scores) {
  const std::int64_t d_value = v.cols / s.kv_heads;
  Real* v_transposed = scratch;
  const MatrixView ds{scratch + d_value * s.keys, s.queries, s.keys, s.keys};
  each_head(s, [&](std::int64_t b, std::int64_t h) HWY_ATTR {
    const ConstMatrixView go = block(dout, b, s.queries, h, s.heads),
                          m = weights_block(weights.dropped, b, h, s);
    // O = M V
    if (dv.data != nullptr) add_product(shared_gradient(dv, b, h, s), {m.data, 1, m.stride}, go);
    if (!scores) return;
    const ConstMatrixView vh = kv_block(v, b, h, s);
    if (h % s.heads_per_kv_head() == 0) transpose(v_transposed, s.keys, vh.data, vh.stride, s.keys, d_value);
    const bool dropped = weights.dropout.data != nullptr;
    const ConstMatrixView factor = dropped ? weights_block(weights.dropout, b, h, s) : weights.dropout;
    score_gradient(ds, go, v_transposed, weights_block(weights.full, b, h, s), factor, b, s, mask, scale);
    with_scores(b, h, ds);
  });
}

// Adds to dq and dk of a head, from scale dS: S = scale Q K^T - slope |i - j|.
HWY_INLINE void add_score_gradients(const AttentionGradients& d, const AttentionInputs& x, std::int64_t b,
                                    std::int64_t h, ConstMatrixView ds, const AttentionSizes& s) {
  if (d.q.data != nullptr)
    add_product(block(d.q, b, s.queries, h, s.heads), {ds.data, ds.stride, 1}, kv_block(x.k, b, h, s));
  if (d.k.data != nullptr)
    add_product(shared_gradient(d.k, b, h, s), {ds.data, 1, ds.stride}, block(x.q, b, s.queries, h, s.heads));
}

void attention_backward(AttentionGradients d, ConstMatrixView dout, AttentionInputs x, KeptWeights weights,
                        Real* scratch, const AttentionSizes& s, const AttentionMask& mask, Real scale) {
  const bool scores = d.q.data != nullptr || d.k.data != nullptr;
  each_score_gradient(d.v, dout, x.v, weights, scratch, s, mask, scale, scores,
                      [&](auto b, auto h, auto ds) HWY_ATTR { add_score_gradients(d, x, b, h, ds, s); });
}

void attention_mask_forward(MatrixView y, ConstMatrixView scores, const AttentionSizes& s,
                            const AttentionMask& mask) {
  std::copy_n(scores.data, y.elements(), y.data);
  each_head(s, [&](std::int64_t b, std::int64_t h) HWY_ATTR {
    const MatrixView of_head = weights_block(y, b, h, s);
    if (!mask.slopes.empty()) subtract_distances(of_head, of_head, b, h, mask);
    hide(of_head, b, mask, -std::numeric_limits<Real>::infinity());
  });
}

void attention_scores_backward(AttentionGradients d, ConstMatrixView dscores, AttentionInputs x,
                               Real* scratch, const AttentionSizes& s, Real scale) {
  const MatrixView ds{scratch, s.queries, s.keys, s.keys};
  each_head(s, [&](std::int64_t b, std::int64_t h) HWY_ATTR {
    std::copy_n(weights_block(dscores, b, h, s).data, ds.elements(), ds.data);
    multiply_by(ds.data, scale, ds.elements());
    add_score_gradients(d, x, b, h, ds, s);
  });
}

void attention_softmax_backward(GradientView dscores, GradientView dv, ConstMatrixView dout,
                                ConstMatrixView v, KeptWeights weights, Real* scratch,
                                const AttentionSizes& s) {
  each_score_gradient(dv, dout, v, weights, scratch, s, {}, 1, dscores.data != nullptr,
                      [&](auto b, auto h, auto ds) { accumulate(weights_block(dscores, b, h, s), ds); });
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, attention_weights_forward,
                 (MatrixView weights, ConstMatrixView q, ConstMatrixView k, Real* scratch,
                  const AttentionSizes& sizes, const AttentionMask& mask, Real scale),
                 weights, q, k, scratch, sizes, mask, scale)
THIMBLE_DISPATCH(void, attention_mask_forward,
                 (MatrixView y, ConstMatrixView scores, const AttentionSizes& sizes,
                  const AttentionMask& mask),
                 y, scores, sizes, mask)
THIMBLE_DISPATCH(void, attention_scores_backward,
                 (AttentionGradients gradients, ConstMatrixView dscores, AttentionInputs inputs,
                  Real* scratch, const AttentionSizes& sizes, Real scale),
                 gradients, dscores, inputs, scratch, sizes, scale)
THIMBLE_DISPATCH(void, attention_softmax_forward,
                 (MatrixView weights, ConstMatrixView scores, const AttentionSizes& sizes,
                  const AttentionMask& mask),
                 weights, scores, sizes, mask)
THIMBLE_DISPATCH(void, attention_apply_forward,
                 (MatrixView out, ConstMatrixView weights, ConstMatrixView v, const AttentionSizes& sizes),
                 out, weights, v, sizes)
THIMBLE_DISPATCH(void, attention_backward,
                 (AttentionGradients gradients, ConstMatrixView dout, AttentionInputs inputs,
                  KeptWeights weights, Real* scratch, const AttentionSizes& sizes, const AttentionMask& mask,
                  Real scale),
                 gradients, dout, inputs, weights, scratch, sizes, mask, scale)
THIMBLE_DISPATCH(void, attention_softmax_backward,
                 (GradientView dscores, GradientView dv, ConstMatrixView dout, ConstMatrixView v,
                  KeptWeights weights, Real* scratch, const AttentionSizes& sizes),
                 dscores, dv, dout, v, weights, scratch, sizes)
