// Matrices for tests of kernels: compared with formulas in long double, and laid out with gaps between the
// rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "thimble/engine/random.h"
#include "thimble/engine/tensor.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Sizes around the widths of vector registers, and others.
inline constexpr std::int64_t kSizes[] = {1, 2, 3, 5, 7, 15, 16, 17, 31, 33, 37, 64, 100};

// The tolerance for the rounding of sums of some hundred terms of size 1.
inline constexpr double kRounding = sizeof(Real) == 8 ? 1e-13 : 2e-5;

inline constexpr Real kEpsilon = Real(1e-5), kInfinity = std::numeric_limits<Real>::infinity(),
                      kNaN = std::numeric_limits<Real>::quiet_NaN();

using Wide = long double;

// A matrix of standard normal numbers inside a wider one; the rest of which must not change.
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed = 0, std::int64_t gap = 0)
      : rows_(rows),
        cols_(cols),
        stride_(cols + gap),
        elements_(static_cast<std::size_t>(rows * stride_ + 1), kGap) {
    const Random random(seed, Stream::gradcheck);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        (*this)(r, c) = seed == 0 ? 0
                                  : static_cast<Real>(random.normal(static_cast<std::uint64_t>(r),
                                                                    static_cast<std::uint32_t>(c)));
      }
    }
  }

  Real& operator()(std::int64_t r, std::int64_t c) {
    return elements_[static_cast<std::size_t>(r * stride_ + c)];
  }
  Real operator()(std::int64_t r, std::int64_t c) const {
    return elements_[static_cast<std::size_t>(r * stride_ + c)];
  }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  MatrixView view() { return {elements_.data(), rows_, cols_, stride_}; }
  ConstMatrixView view() const { return {elements_.data(), rows_, cols_, stride_}; }
  operator MatrixView() { return view(); }
  operator GradientView() { return view(); }
  operator ConstMatrixView() const { return view(); }

  void fill(Real value) {
    for (std::int64_t r = 0; r < rows_; ++r) std::fill_n(elements_.begin() + r * stride_, cols_, value);
  }

  // Returns whether nothing was written between the rows or after the last.
  bool intact() const {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(elements_.size()); ++i) {
      const bool inside = i / stride_ < rows_ && i % stride_ < cols_;
      if (!inside && elements_[static_cast<std::size_t>(i)] != kGap) return false;
    }
    return true;
  }

 private:
  static constexpr Real kGap = 12345;

  std::int64_t rows_, cols_, stride_;
  AlignedVector<Real> elements_;
};

// A matrix in long double, of zeros or of the numbers of another one, for the loops of reference.h. Copies
// share their numbers.
struct WideMatrix : BasicMatrixView<Wide> {
  WideMatrix(std::int64_t height, std::int64_t width)
      : BasicMatrixView<Wide>{nullptr, height, width, width},
        elements(std::make_shared<std::vector<Wide>>(static_cast<std::size_t>(height * width))) {
    data = elements->data();
  }
  explicit WideMatrix(const Matrix& m) : WideMatrix(m.rows(), m.cols()) {
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(m.view().row(r), cols, row(r));
  }
  Wide operator()(std::int64_t r, std::int64_t c) const { return row(r)[c]; }

  std::shared_ptr<std::vector<Wide>> elements;
};

// Returns the largest |actual - expected| / max(1, |expected|); expected(r, c) is the formula. Infinite where
// one of them is not a number and the other is.
template <class Expected>
double worst_error(const Matrix& actual, const Expected& expected) {
  double worst = 0;
  for (std::int64_t r = 0; r < actual.rows(); ++r) {
    for (std::int64_t c = 0; c < actual.cols(); ++c) {
      const auto want = static_cast<long double>(expected(r, c));
      const long double error =
          std::abs(static_cast<long double>(actual(r, c)) - want) / std::max(1.0L, std::abs(want));
      worst = std::max(
          worst, std::isnan(error) ? std::numeric_limits<double>::infinity() : static_cast<double>(error));
    }
  }
  return worst;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
