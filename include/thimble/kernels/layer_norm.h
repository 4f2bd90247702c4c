// Layer normalisation (Ba, Kiros and Hinton 2016) over the columns of each row.
#pragma once

#include "thimble/tensor/matrix_view.h"

namespace thimble::inline THIMBLE_PRECISION::kernels {

// y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(variance + epsilon), the variance divided by C. x, y (R,
// C); weight, bias (1, C). Saves statistics (R, 2): mean, rstd.
void layer_norm_forward(MatrixView y, MatrixView statistics, ConstMatrixView x, ConstMatrixView weight,
                        ConstMatrixView bias, Real epsilon);

// Adds to dx (R, C), dweight and dbias (1, C); a view without data is skipped.
void layer_norm_backward(GradientView dx, MatrixView dweight, MatrixView dbias, ConstMatrixView dy,
                         ConstMatrixView x, ConstMatrixView weight, ConstMatrixView statistics);

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
