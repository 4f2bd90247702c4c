// RMS normalisation (Zhang and Sennrich 2019) over the columns of each row.
#pragma once

#include "thimble/tensor/matrix_view.h"

namespace thimble::inline THIMBLE_PRECISION::kernels {

// y = x rrms weight, rrms = 1 / sqrt(mean of x^2 + epsilon). x, y (R, C); weight (1, C). Saves rrms (R, 1).
void rms_norm_forward(MatrixView y, MatrixView rrms, ConstMatrixView x, ConstMatrixView weight, Real epsilon);

// Adds to dx (R, C) and dweight (1, C); a view without data is skipped.
void rms_norm_backward(GradientView dx, MatrixView dweight, ConstMatrixView dy, ConstMatrixView x,
                       ConstMatrixView weight, ConstMatrixView rrms);

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
