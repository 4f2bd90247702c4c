// What computes: the instruction set of the kernels and the library of the matrix products.
#pragma once

#include <string_view>

#include "thimble/engine/gemm.h"

namespace thimble {

// Selects what computes, to be called before main(), when no kernel has run. `target` is the largest instruction set of
// x86: avx2, sse4 or baseline, "" for what the CPU has; tests on one CPU cover others with it, and OPENBLAS_CORETYPE
// does the same for OpenBLAS. `gemm` is openblas or "". What is no known name makes the first matrix product throw.
void select_backend(std::string_view target, std::string_view gemm);

// Returns whether OpenBLAS computes the matrix products, for comparison. Its results depend on the CPU, and on how a
// product is cut. Throws ConfigError when a name that was selected is not known.
bool uses_openblas();

inline namespace THIMBLE_PRECISION {
namespace kernels {

// Returns the name of the kernel that OpenBLAS has chosen, such as Haswell; "" in a program without OpenBLAS.
std::string_view blas_kernel();

// Computes c = alpha op(a) op(b) + beta c by OpenBLAS on the calling thread, for matching sizes. beta = 0
// overwrites c, NaN included. Throws Error without OpenBLAS.
void blas_gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha, Real beta);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
