// The affine map of every projection, with PyTorch's orientation of the weight.
#pragma once

#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// y = x W^T + b: y (R, O), x (R, I), weight (O, I), bias (1, O) or without data for none. transposed (I, O):
// W^T, or without data; BLAS is faster with it where wants_transposed() says so.
void linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, ConstMatrixView transposed,
                    ConstMatrixView bias);
bool wants_transposed();

// to (C, R) = the transpose of from (R, C).
void transpose(MatrixView to, ConstMatrixView from);

// Adds to dx (R, I), dweight (O, I) and dbias (1, O); a view without data is skipped.
void linear_backward(GradientView dx, GradientView dweight, MatrixView dbias, ConstMatrixView dy,
                     ConstMatrixView x, ConstMatrixView weight);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
