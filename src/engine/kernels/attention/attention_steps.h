// The steps of attention one by one, for passes in which hooks watch or replace the weights, and for scores of another
// kind. Together they have the bits of attention_forward(). Shapes as in attention.h.
#pragma once

#include "engine/kernels/attention/attention.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Computes weights = softmax(scale q k^T) over the visible keys, or scale q k^T if sizes.softmax is false,
// and 0 for the others; a query without a visible key gets a row of zeros. ALiBi requires the softmax.
// scratch: Dk Tk elements.
void attention_weights_forward(MatrixView weights, ConstMatrixView q, ConstMatrixView k, Real* scratch,
                               const AttentionSizes& sizes, const AttentionMask& mask, Real scale);

// Computes weights = softmax(scores) over the visible keys, as attention_weights_forward() does.
void attention_softmax_forward(MatrixView weights, ConstMatrixView scores, const AttentionSizes& sizes,
                               const AttentionMask& mask);

// Computes out = weights v for every head.
void attention_apply_forward(MatrixView out, ConstMatrixView weights, ConstMatrixView v,
                             const AttentionSizes& sizes);

// Computes y = scores - slope |i - j| for visible keys, -infinity for the others.
void attention_mask_forward(MatrixView y, ConstMatrixView scores, const AttentionSizes& sizes,
                            const AttentionMask& mask);

// Adds to dq and dk the gradients of scores = scale q k^T; skips those without data. scratch: Tq Tk elements.
void attention_scores_backward(AttentionGradients gradients, ConstMatrixView dscores, AttentionInputs inputs,
                               Real* scratch, const AttentionSizes& sizes, Real scale);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
