// The steps of attention, one head of one sequence at a time, with the symbols of attention.cpp.
//   forward    S = scale Q K^T,  P = softmax of each row of S - slope |i - j| over its visible keys,  O = M V
//   backward   of S:  dQ += scale dS K,  dK += scale dS^T Q;  of the others: attention_backward()
#include "engine/kernels/attention/attention_steps.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/attention/attention_steps.cpp"
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
    const ConstMatrixView qh = block(x.q, b, s.queries, h, s.heads), kh = kv_block(x.k, b, h, s);
    if (d.q.data != nullptr) add_product(block(d.q, b, s.queries, h, s.heads), {ds.data, ds.stride, 1}, kh);
    if (d.k.data != nullptr) add_product(kv_block(d.k, b, h, s), {ds.data, 1, ds.stride}, qh);
  });
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
