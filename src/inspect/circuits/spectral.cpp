#include "thimble/inspect/spectral.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

#include "thimble/engine/error.h"

namespace thimble {

namespace {

using Matrix = Eigen::MatrixXd;

// Throws NumericError unless all elements are finite.
Matrix to_eigen(const char* name, const DoubleMatrix& a) {
  require<NumericError>(std::ranges::all_of(a.values, [](double x) { return std::isfinite(x); }),
                        "{}: a ({}, {}) matrix has a number that is not finite; check the weights", name,
                        a.rows, a.cols);
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(a.values.data(), a.rows, a.cols);
}

std::vector<double> values_of(const Matrix& a) {
  const Eigen::VectorXd values = Eigen::JacobiSVD<Matrix>(a).singularValues();
  return {values.begin(), values.end()};
}

// Returns R (min(M, K), K) of a = Q R.
Matrix r_factor(const Matrix& a) {
  const Matrix qr = Eigen::HouseholderQR<Matrix>(a).matrixQR();
  return qr.topRows(std::min(a.rows(), a.cols())).triangularView<Eigen::Upper>();
}

}  // namespace

std::vector<std::complex<double>> eigenvalues(const DoubleMatrix& a) {
  require<ShapeError>(a.rows == a.cols, "eigenvalues: the matrix must be square, got ({}, {})", a.rows,
                      a.cols);
  if (a.values.empty()) return {};
  const Eigen::EigenSolver<Matrix> solver(to_eigen("eigenvalues", a), false);
  require<NumericError>(solver.info() == Eigen::Success,
                        "eigenvalues: the iteration did not converge on a ({}, {}) matrix", a.rows, a.cols);
  return {solver.eigenvalues().begin(), solver.eigenvalues().end()};
}

std::vector<double> singular_values_of_product(const DoubleMatrix& a, const DoubleMatrix& b) {
  require<ShapeError>(a.cols == b.rows,
                      "singular_values_of_product: (M, K) x (K, N): got ({}, {}) x ({}, {})", a.rows, a.cols,
                      b.rows, b.cols);
  if (a.values.empty() || b.values.empty()) return {};
  const char* const name = "singular_values_of_product";
  const Matrix ra = r_factor(to_eigen(name, a)), rb = r_factor(to_eigen(name, b).transpose());
  return values_of(ra * rb.transpose());
}

}  // namespace thimble
