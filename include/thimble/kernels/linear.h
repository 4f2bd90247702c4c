// The affine map of every projection, with PyTorch's orientation of the weight.
#pragma once

#include "thimble/tensor/matrix_view.h"

namespace thimble::inline THIMBLE_PRECISION::kernels {

// y = x W^T + b: y (R, O), x (R, I), weight (O, I), bias (1, O) or without data for none.
void linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, ConstMatrixView bias);

// Adds to dx (R, I), dweight (O, I) and dbias (1, O); a view without data is skipped.
void linear_backward(MatrixView dx, MatrixView dweight, MatrixView dbias, ConstMatrixView dy,
                     ConstMatrixView x, ConstMatrixView weight);

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
