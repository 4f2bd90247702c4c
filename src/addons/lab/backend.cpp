// The lab has the kernels of WebAssembly, and no other library of matrix products.
#include "engine/kernels/products/backend.h"
#include "thimble/engine/error.h"
#include "thimble/engine/real.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

void blas_gemm(MatrixView, ConstMatrixView, Op, ConstMatrixView, Op, Real, Real) {
  throw Error("blas_gemm: the lab has no OpenBLAS");
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
