// A matrix in memory that somebody else owns. `stride` is the distance between the starts of two rows, so a
// view can also be a block of columns of a wider matrix: one head inside a packed projection, without a copy.
#pragma once

#include <cstdint>
#include <type_traits>

#include "thimble/core/real.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

template <class T>
struct BasicMatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  T* row(std::int64_t r) const { return data + r * stride; }
  std::int64_t elements() const { return rows * cols; }
  bool contiguous() const { return stride == cols; }

  BasicMatrixView row_block(std::int64_t first, std::int64_t count) const {
    return {row(first), count, cols, stride};
  }
  BasicMatrixView column_block(std::int64_t first, std::int64_t count) const {
    return {data + first, rows, count, stride};
  }

  operator BasicMatrixView<const T>() const { return {data, rows, cols, stride}; }
};

using MatrixView = BasicMatrixView<Real>;
using ConstMatrixView = BasicMatrixView<const Real>;

// A matrix that backward kernels add to. While it is uninitialized, the first kernel that adds to it
// overwrites every element, which saves a pass that sets it to zero. A view without data, which has no rows
// either, stands for a gradient that nobody needs; kernels skip it.
struct GradientView : MatrixView {
  bool uninitialized = false;

  GradientView() = default;
  GradientView(const MatrixView& view, bool nothing_added = false)
      : MatrixView(view), uninitialized(nothing_added) {}
  GradientView row_block(std::int64_t first, std::int64_t count) const {
    if (data == nullptr) return {};
    return {MatrixView::row_block(first, count), uninitialized};
  }
  GradientView column_block(std::int64_t first, std::int64_t count) const {
    if (data == nullptr) return {};
    return {MatrixView::column_block(first, count), uninitialized};
  }
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
