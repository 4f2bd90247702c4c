// Multi-head scaled dot-product attention (Vaswani et al. 2017, section 3.2).
//
// Rows are positions, sequence by sequence; columns are heads side by side: q (B Tq, H Dk), k (B Tk, KV Dk),
// v (B Tk, KV Dv), out (B Tq, H Dv), which may be blocks of columns of wider matrices. H / KV consecutive
// heads of q share a head of k and v: all of them with KV = 1 (multi-query, Shazeer 2019), some of them with
// 1 < KV < H (grouped-query, Ainslie et al. 2023). Attention weights and scores are (B H Tq, Tk): one row per
// sequence, head and query.
#pragma once

#include <cstdint>

#include "thimble/engine/attention_mask.h"
#include "thimble/engine/attention_sizes.h"
#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

struct AttentionInputs {
  ConstMatrixView q, k, v;
};

// The gradients of the inputs, in the order in which each head adds to them; those without data are skipped.
struct AttentionGradients {
  GradientView v, q, k;
};

// The weights that a forward pass keeps: after the softmax, and as they were applied, times `dropout` where that has
// data.
struct KeptWeights {
  ConstMatrixView full, dropped, dropout;
};

// Computes weights = softmax(scale q k^T) over the visible keys, or scale q k^T if sizes.softmax is false,
// and 0 for the others; a query without a visible key gets a row of zeros. ALiBi requires the softmax.
// scratch: Dk Tk elements.
void attention_weights_forward(MatrixView weights, ConstMatrixView q, ConstMatrixView k, Real* scratch,
                               const AttentionSizes& sizes, const AttentionMask& mask, Real scale);

// Computes y = scores - slope |i - j| for visible keys, -infinity for the others.
void attention_mask_forward(MatrixView y, ConstMatrixView scores, const AttentionSizes& sizes,
                            const AttentionMask& mask);

// Adds to dq and dk the gradients of scores = scale q k^T; skips those without data. scratch: Tq Tk elements.
void attention_scores_backward(AttentionGradients gradients, ConstMatrixView dscores, AttentionInputs inputs,
                               Real* scratch, const AttentionSizes& sizes, Real scale);

// Computes weights = softmax(scores) over the visible keys, as attention_weights_forward() does.
void attention_softmax_forward(MatrixView weights, ConstMatrixView scores, const AttentionSizes& sizes,
                               const AttentionMask& mask);

// Computes out = weights v for every head.
void attention_apply_forward(MatrixView out, ConstMatrixView weights, ConstMatrixView v,
                             const AttentionSizes& sizes);

// Adds the gradients through attention_weights_forward() and attention_apply_forward(). scratch: Dv Tk + Tq Tk elements.
void attention_backward(AttentionGradients gradients, ConstMatrixView dout, AttentionInputs inputs,
                        KeptWeights weights, Real* scratch, const AttentionSizes& sizes,
                        const AttentionMask& mask, Real scale);

// Adds to dscores and dv the gradients through attention_softmax_forward() and attention_apply_forward();
// skips those without data. scratch: Dv Tk + Tq Tk elements.
void attention_softmax_backward(GradientView dscores, GradientView dv, ConstMatrixView dout,
                                ConstMatrixView v, KeptWeights weights, Real* scratch,
                                const AttentionSizes& sizes);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
