// In place of backend.cpp in the lab and in static programs, which have no OpenBLAS.
#include "engine/kernels/products/backend.h"
#include "thimble/engine/error.h"
#include "thimble/engine/real.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

std::string_view blas_kernel() { return ""; }

void blas_gemm(MatrixView, ConstMatrixView, Op, ConstMatrixView, Op, Real, Real) {
  throw Error("blas_gemm: this program was built without OpenBLAS");
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
