// Cross entropy fused with the softmax before it.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Returns the sum over the labeled rows n of weight * -sum_j q_nj ln p_nj, with p = softmax(logits) and
// q_nj = (1 - smoothing) [j = label_n] + smoothing / V (Szegedy et al. 2016, section 7).
// logits (N, V), N labels below V (the caller checks), of which negative ones mark unlabeled rows. Saves
// dlogits (N, V) = weight (p - q), 0 in unlabeled rows.
double cross_entropy_forward(MatrixView dlogits, ConstMatrixView logits, std::span<const std::int32_t> labels,
                             Real smoothing, Real weight);

// Returns the number of labeled rows whose largest logit, the first of equals, is that of the label.
std::int64_t count_correct(ConstMatrixView logits, std::span<const std::int32_t> labels);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
