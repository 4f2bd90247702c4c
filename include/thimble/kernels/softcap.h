// Soft capping; see softcap.cpp.
#pragma once

#include "thimble/tensor/matrix_view.h"

namespace thimble::inline THIMBLE_PRECISION::kernels {

void softcap_forward(MatrixView y, ConstMatrixView x, Real cap);
void softcap_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y, Real cap);

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
