// The affine map of torch.nn.Linear.
#pragma once

#include "thimble/engine/gemm.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Computes y = x W^T + b: y (R, O), x (R, I), weight (O, I), bias (1, O) or without data for none. packed (I, O) is
// W^T, or without data.
void linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, PackedView packed,
                    ConstMatrixView bias);

// Adds to dx (R, I), dweight (O, I) and dbias (1, O); skips those without data. packed (O, I) is W, or without
// data.
void linear_backward(GradientView dx, GradientView dweight, MatrixView dbias, ConstMatrixView dy,
                     ConstMatrixView x, ConstMatrixView weight, PackedView packed);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
