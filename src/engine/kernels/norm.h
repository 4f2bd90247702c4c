// Layer normalization (Ba, Kiros and Hinton 2016) and RMS normalization (Zhang and Sennrich 2019) over the
// columns of each row.
#pragma once

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Computes y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(variance + epsilon), where the variance divides
// by C. x, y (R, C); weight, bias (1, C). Saves mean_rstd (R, 2).
void layer_norm_forward(MatrixView y, MatrixView mean_rstd, ConstMatrixView x, ConstMatrixView weight,
                        ConstMatrixView bias, Real epsilon);

// Adds to dx (R, C), dweight and dbias (1, C); skips those without data.
void layer_norm_backward(GradientView dx, MatrixView dweight, MatrixView dbias, ConstMatrixView dy,
                         ConstMatrixView x, ConstMatrixView weight, ConstMatrixView mean_rstd);

// Computes y = x rrms weight, rrms = 1 / sqrt(mean of x^2 + epsilon). x, y (R, C); weight (1, C). Saves rrms
// (R, 1).
void rms_norm_forward(MatrixView y, MatrixView rrms, ConstMatrixView x, ConstMatrixView weight, Real epsilon);

// Adds to dx (R, C) and dweight (1, C); skips those without data.
void rms_norm_backward(GradientView dx, MatrixView dweight, ConstMatrixView dy, ConstMatrixView x,
                       ConstMatrixView weight, ConstMatrixView rrms);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
