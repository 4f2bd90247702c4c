// LAPACK stores matrices column by column, so it reads a row-major matrix as its transpose, which has the
// same eigenvalues and singular values, and whose factors L Q are the transposes of Q R.
#include "thimble/inspect/spectral.h"

#include <algorithm>
#include <cmath>

#include "thimble/engine/error.h"

// Debian's OpenBLAS contains LAPACK, but no header for it. The lengths of the strings come last.
extern "C" {
void dgeev_(const char* left, const char* right, const int* n, double* a, const int* lda, double* real,
            double* imaginary, double* vl, const int* ldvl, double* vr, const int* ldvr, double* work,
            const int* lwork, int* info, std::size_t, std::size_t);
void dgesvd_(const char* left, const char* right, const int* m, const int* n, double* a, const int* lda,
             double* s, double* u, const int* ldu, double* vt, const int* ldvt, double* work,
             const int* lwork, int* info, std::size_t, std::size_t);
void dgelqf_(const int* m, const int* n, double* a, const int* lda, double* tau, double* work,
             const int* lwork, int* info);
void openblas_set_num_threads(int threads);
}

namespace thimble {

namespace {

// Makes OpenBLAS use one thread, and throws NumericError unless all elements are finite.
void prepare(const char* name, const DoubleMatrix& a) {
  static const bool one_thread = (openblas_set_num_threads(1), true);
  static_cast<void>(one_thread);
  require<NumericError>(std::ranges::all_of(a.values, [](double x) { return std::isfinite(x); }),
                        "{}: a ({}, {}) matrix has a number that is not finite; check the weights", name,
                        a.rows, a.cols);
}

void require_converged(const char* name, const DoubleMatrix& a, int info) {
  require<NumericError>(info == 0, "{}: LAPACK did not converge on a ({}, {}) matrix (info {})", name, a.rows,
                        a.cols, info);
}

// Returns R (min(M, K), K) of a = Q R, for a (M, K) and orthonormal columns of Q.
DoubleMatrix r_factor(DoubleMatrix a) {
  const int m = static_cast<int>(a.rows), k = static_cast<int>(a.cols), work_size = 64 * std::max(1, k);
  std::vector<double> tau(static_cast<std::size_t>(std::min(m, k))),
      work(static_cast<std::size_t>(work_size));
  int info = 0;
  dgelqf_(&k, &m, a.values.data(), &k, tau.data(), work.data(), &work_size, &info);
  DoubleMatrix r(std::min(m, k), k);
  for (std::int64_t i = 0; i < r.rows; ++i) std::copy(a.row(i) + i, a.row(i) + k, r.row(i) + i);
  return r;
}

}  // namespace

std::vector<std::complex<double>> eigenvalues(const DoubleMatrix& a) {
  require<ShapeError>(a.rows == a.cols, "eigenvalues: the matrix must be square, got ({}, {})", a.rows,
                      a.cols);
  if (a.values.empty()) return {};
  prepare("eigenvalues", a);
  DoubleMatrix copy = a;
  const int n = static_cast<int>(a.rows), work_size = 64 * n, one = 1;
  const auto size = static_cast<std::size_t>(n);
  std::vector<double> real(size), imaginary(size), work(static_cast<std::size_t>(work_size));
  int info = 0;
  dgeev_("N", "N", &n, copy.values.data(), &n, real.data(), imaginary.data(), nullptr, &one, nullptr, &one,
         work.data(), &work_size, &info, 1, 1);
  require_converged("eigenvalues", a, info);
  std::vector<std::complex<double>> values;
  for (std::size_t i = 0; i < size; ++i) values.emplace_back(real[i], imaginary[i]);
  return values;
}

std::vector<double> singular_values(const DoubleMatrix& a) {
  if (a.values.empty()) return {};
  prepare("singular_values", a);
  DoubleMatrix copy = a;
  const int m = static_cast<int>(a.cols), n = static_cast<int>(a.rows), work_size = 64 * (m + n), one = 1;
  std::vector<double> values(static_cast<std::size_t>(std::min(m, n)));
  std::vector<double> work(static_cast<std::size_t>(work_size));
  int info = 0;
  dgesvd_("N", "N", &m, &n, copy.values.data(), &m, values.data(), nullptr, &one, nullptr, &one, work.data(),
          &work_size, &info, 1, 1);
  require_converged("singular_values", a, info);
  return values;
}

std::vector<double> singular_values_of_product(const DoubleMatrix& a, const DoubleMatrix& b) {
  require<ShapeError>(a.cols == b.rows,
                      "singular_values_of_product: (M, K) x (K, N): got ({}, {}) x ({}, {})", a.rows, a.cols,
                      b.rows, b.cols);
  if (a.values.empty() || b.values.empty()) return {};
  prepare("singular_values_of_product", a);
  prepare("singular_values_of_product", b);
  return singular_values(matmul(r_factor(a), transposed(r_factor(transposed(b)))));
}

}  // namespace thimble
