// What computes: the instruction set of the kernels and the library of the matrix products, which two
// environment variables select. Both throw ConfigError when the variable is no known name.
#pragma once

#include "thimble/kernels/gemm.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Returns whether THIMBLE_GEMM=openblas makes OpenBLAS compute the matrix products, for comparison. Its results
// depend on the CPU, and on how a product is cut.
bool uses_openblas();

// Computes c = alpha op(a) op(b) + beta c by OpenBLAS on the calling thread, for matching sizes. beta = 0
// overwrites c, NaN included.
void blas_gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha, Real beta);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
