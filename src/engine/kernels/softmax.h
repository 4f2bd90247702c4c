// Softmax.
#pragma once

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Computes y = softmax(x) for every row: x and y (R, N), N >= 1. Subtracts the maximum of the row, so that
// large inputs do not overflow.
void softmax_forward(MatrixView y, ConstMatrixView x);

// Adds dx += y (dy - sum_j dy_j y_j) for every row; all (R, N).
void softmax_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
