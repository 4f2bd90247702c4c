#include "thimble/kernels/gemm.h"

#include <cblas.h>

#include "thimble/core/error.h"

namespace thimble::inline THIMBLE_PRECISION::kernels {

namespace {

#ifdef THIMBLE_DOUBLE
constexpr auto blas_gemm = cblas_dgemm;
#else
constexpr auto blas_gemm = cblas_sgemm;
#endif

blasint size(std::int64_t n) { return static_cast<blasint>(n); }

}  // namespace

void gemm(MatrixView c, ConstMatrixView a, Op op_a, ConstMatrixView b, Op op_b, Real alpha, Real beta) {
  static const bool one_thread = (openblas_set_num_threads(1), true);
  static_cast<void>(one_thread);
  const bool ta = op_a == Op::transpose, tb = op_b == Op::transpose;
  const std::int64_t m = ta ? a.cols : a.rows, k = ta ? a.rows : a.cols;
  const std::int64_t kb = tb ? b.cols : b.rows, n = tb ? b.rows : b.cols;
  require<ShapeError>(
      m == c.rows && n == c.cols && k == kb,
      "gemm: ({}, {}) * ({}, {}) -> ({}, {}): the inner sizes must match, the outer ones be the result's", m,
      k, kb, n, c.rows, c.cols);
  if (m == 0 || n == 0) return;
  const auto trans = [](bool t) { return t ? CblasTrans : CblasNoTrans; };
  blas_gemm(CblasRowMajor, trans(ta), trans(tb), size(m), size(n), size(k), alpha, a.data, size(a.stride),
            b.data, size(b.stride), beta, c.data, size(c.stride));
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
