// Cross entropy fused with the softmax before it.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Rows with a label below 0 count for nothing.
// The sum over labelled rows n of weight * -sum_j q_nj ln p_nj, with p = softmax(logits) and
// q = (1 - smoothing) [j = label] + smoothing / V (Szegedy et al. 2016, section 7).
// logits (N, V), N labels below V (the caller checks). Saves dlogits (N, V) = weight (p - q), 0 in unlabelled
// rows.
double cross_entropy_forward(MatrixView dlogits, ConstMatrixView logits, std::span<const std::int32_t> labels,
                             Real smoothing, Real weight);

// How many labelled rows have their largest logit, the first of equals, at the label.
std::int64_t count_correct(ConstMatrixView logits, std::span<const std::int32_t> labels);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
