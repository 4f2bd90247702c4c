#include "thimble/engine/error.h"
#include "thimble/inspect/spectral.h"

namespace thimble {

DoubleMatrix transposed(const DoubleMatrix& a) {
  DoubleMatrix t(a.cols, a.rows);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t c = 0; c < a.cols; ++c) t(c, r) = a(r, c);
  }
  return t;
}

DoubleMatrix matmul(const DoubleMatrix& a, const DoubleMatrix& b) {
  require<ShapeError>(a.cols == b.rows, "matmul: (M, K) x (K, N): got ({}, {}) x ({}, {})", a.rows, a.cols,
                      b.rows, b.cols);
  DoubleMatrix c(a.rows, b.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = 0; k < a.cols; ++k) {
      for (std::int64_t j = 0; j < b.cols; ++j) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

}  // namespace thimble
