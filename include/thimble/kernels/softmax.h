// Softmax of every row.
#pragma once

#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// y = softmax(x), row by row; x and y (R, N), N >= 1. Shifted by the row's maximum, so large inputs do not
// overflow.
void softmax_forward(MatrixView y, ConstMatrixView x);

// dx += y (dy - sum_j dy_j y_j), row by row; all (R, N).
void softmax_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
