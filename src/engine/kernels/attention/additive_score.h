// The additive score of projected queries and keys (Bahdanau et al. 2015, "Neural Machine Translation by
// Jointly Learning to Align and Translate", appendix A.1.2).
//
// Rows are positions, sequence by sequence; columns are heads side by side: q (B Tq, H D), k (B Tk, KV D),
// which may be blocks of columns of wider matrices, and weight (H, D). H / KV consecutive heads share their
// keys. Scores are (B H Tq, Tk): one row per sequence, head and query.
#pragma once

#include "thimble/engine/attention_sizes.h"
#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Computes score_ij = sum_d weight_d tanh(q_id + k_jd) for every head. scratch: D (Tq + 2 Tk) elements.
void additive_score_forward(MatrixView scores, ConstMatrixView q, ConstMatrixView k, ConstMatrixView weight,
                            Real* scratch, const AttentionSizes& sizes);

// Adds to dq, dk and dweight, which may be blocks of one matrix; skips those without data.
// scratch: D (Tq + 2 Tk + 1) elements.
void additive_score_backward(MatrixView dq, MatrixView dk, MatrixView dweight, ConstMatrixView dscores,
                             ConstMatrixView q, ConstMatrixView k, ConstMatrixView weight, Real* scratch,
                             const AttentionSizes& sizes);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
