// Eigenvalues and singular values; by Eigen, on the calling thread. In double whatever
// the precision of the model, so that it is compiled once, outside of f32 and f64.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace thimble {

// A row-major matrix, initially zero.
struct DoubleMatrix {
  std::int64_t rows = 0, cols = 0;
  std::vector<double> values;

  DoubleMatrix() = default;
  DoubleMatrix(std::int64_t r, std::int64_t c) : rows(r), cols(c), values(static_cast<std::size_t>(r * c)) {}

  double* row(std::int64_t r) { return values.data() + r * cols; }
  const double* row(std::int64_t r) const { return values.data() + r * cols; }
  double& operator()(std::int64_t r, std::int64_t c) { return row(r)[c]; }
  double operator()(std::int64_t r, std::int64_t c) const { return row(r)[c]; }
};

// Returns the transpose.
DoubleMatrix transposed(const DoubleMatrix& a);

// Returns a b, with a (M, K) and b (K, N). Throws ShapeError when the inner sizes differ.
DoubleMatrix matmul(const DoubleMatrix& a, const DoubleMatrix& b);

// Returns the N eigenvalues of a (N, N), in no particular order. Throws ShapeError when a is not square,
// NumericError when an element is not finite or the iteration does not converge.
std::vector<std::complex<double>> eigenvalues(const DoubleMatrix& a);

// Returns the singular values of a b, a (M, K) and b (K, N), largest first, but at most K, since the others are
// 0. With a = Qa Ra and b^T = Qb Rb they are the singular values of Ra Rb^T, a (K, K) problem without the
// squares of a^T a. Throws ShapeError as matmul() does and NumericError as eigenvalues() does.
std::vector<double> singular_values_of_product(const DoubleMatrix& a, const DoubleMatrix& b);

}  // namespace thimble
