// Pooling: one vector per sequence, a weighted sum over its positions. Only the weights depend on the kind.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

enum class Pool { mean, first, last };

// Computes weights (B, T): 1 / length for every position of a sequence, or 1 for its first or last one; 0
// elsewhere. lengths (B), each 1 .. T; empty: all T.
void pool_weights(MatrixView weights, Pool kind, std::span<const std::int32_t> lengths);

// Computes y[b] = sum over t of weights[b, t] x[b, t]: y (B, C), x (B T, C).
void pool_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weights);

// Adds dx[b, t] += weights[b, t] dy[b].
void pool_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView weights);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
