// GELU (Hendrycks and Gimpel, "Gaussian error linear units", 2016): y = x Phi(x), Phi the standard normal
// distribution. All views have the same rows and columns.
#pragma once

#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Saves the derivative dy/dx. Relative error of y below 1e-6 in float, 1e-13 in double, the negative tail included.
void gelu_erf_forward(MatrixView y, MatrixView derivative, ConstMatrixView x);

// The approximation y = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3), with the derivative of the
// approximation.
void gelu_tanh_forward(MatrixView y, MatrixView derivative, ConstMatrixView x);

// SiLU (the same paper): y = x sigmoid(x), and its derivative.
void silu_forward(MatrixView y, MatrixView derivative, ConstMatrixView x);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
