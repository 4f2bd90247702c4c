// One matrix per head, as in the general score (Luong et al. 2015, section 3.1).
//
// Columns are heads side by side: x (R, H D), y (R, H E). weight (H D, E) holds the matrices (D, E) of the
// heads, one below the other.
#pragma once

#include <cstdint>

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Computes y_h = x_h W_h for every head h.
void head_linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, std::int64_t heads);

// Adds to dx and dweight; skips those without data.
void head_linear_backward(GradientView dx, GradientView dweight, ConstMatrixView dy, ConstMatrixView x,
                          ConstMatrixView weight, std::int64_t heads);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
