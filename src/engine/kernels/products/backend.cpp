#include "engine/kernels/products/backend.h"

#include <cblas.h>

#include <cstdint>

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

namespace {

#ifdef THIMBLE_DOUBLE
constexpr auto kBlasGemm = cblas_dgemm;
#else
constexpr auto kBlasGemm = cblas_sgemm;
#endif

blasint size(std::int64_t n) { return static_cast<blasint>(n); }

}  // namespace

std::string_view blas_kernel() { return openblas_get_corename(); }

void blas_gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha, Real beta) {
  static const bool one_thread = (openblas_set_num_threads(1), true);
  static_cast<void>(one_thread);
  const auto trans = [](Op op) { return op == Op::transpose ? CblasTrans : CblasNoTrans; };
  kBlasGemm(CblasRowMajor, trans(op_a), trans(op_b), size(c.rows), size(c.cols),
            size(op_a == Op::transpose ? a.rows : a.cols), alpha, a.data, size(a.stride), b.data,
            size(b.stride), beta, c.data, size(c.stride));
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
