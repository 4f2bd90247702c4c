// RMS normalization (Zhang and Sennrich 2019) of every head, without a weight: for query-key normalization
// (Henry et al. 2020).
//
// Columns are heads side by side: x and y (R, H D).
#pragma once

#include <cstdint>

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Computes y = x rrms, rrms = 1 / sqrt(mean of x^2 over the D columns of a head + epsilon). Saves rrms (R,
// H).
void head_norm_forward(MatrixView y, MatrixView rrms, ConstMatrixView x, std::int64_t heads, Real epsilon);

// Adds to dx (R, H D).
void head_norm_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y, ConstMatrixView rrms,
                        std::int64_t heads);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
