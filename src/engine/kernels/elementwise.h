// Element-wise arithmetic. All views of a call have the same rows and columns; every backward adds to the
// gradient.
#pragma once

#include <cstdint>

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

void add_forward(MatrixView y, ConstMatrixView a, ConstMatrixView b);  // y = a + b
void accumulate(GradientView dx, ConstMatrixView dy);                  // dx += dy

void scale_forward(MatrixView y, ConstMatrixView x, Real factor);       // y = factor x
void scale_backward(GradientView dx, ConstMatrixView dy, Real factor);  // dx += factor dy

void mul_forward(MatrixView y, ConstMatrixView a, ConstMatrixView b);       // y = a b
void mul_backward(GradientView da, ConstMatrixView dy, ConstMatrixView b);  // da += dy b

void relu_forward(MatrixView y, ConstMatrixView x);                          // y = max(x, 0)
void relu_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y);  // dx += dy where y > 0

void tanh_forward(MatrixView y, ConstMatrixView x);                          // y = tanh x
void tanh_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y);  // dx += dy (1 - y^2)

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
