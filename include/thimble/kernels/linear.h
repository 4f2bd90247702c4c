// The affine map of torch.nn.Linear, and transposition.
#pragma once

#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Computes y = x W^T + b: y (R, O), x (R, I), weight (O, I), bias (1, O) or without data for none. transposed
// (I, O) is W^T, or without data; BLAS is faster with it where wants_transposed() returns true.
void linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, ConstMatrixView transposed,
                    ConstMatrixView bias);
bool wants_transposed();

// Writes the transpose of from (R, C) to `to` (C, R).
void transpose(MatrixView to, ConstMatrixView from);

// Adds to dx (R, I), dweight (O, I) and dbias (1, O); skips those without data.
void linear_backward(GradientView dx, GradientView dweight, MatrixView dbias, ConstMatrixView dy,
                     ConstMatrixView x, ConstMatrixView weight);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
