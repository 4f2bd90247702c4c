// Views of matrices in memory that the view does not own.
#pragma once

#include <cstdint>
#include <type_traits>

#include "thimble/engine/real.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// A matrix (rows, cols), row-major. `stride` is the distance between the starts of two rows, in elements, so
// that a view can be a block of columns of a wider matrix, such as one head of a packed projection.
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

// A gradient that backward kernels add to. While it is uninitialized, a kernel overwrites every element,
// which saves a pass that sets it to zero. A view without data, which has no rows either, is a gradient that
// is not required; kernels skip it.
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
