// The neighbourhood of every position side by side, so that a convolution over time is a matrix product.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

struct WindowSizes {
  std::int64_t time;                           // positions of a sequence
  std::int64_t window;                         // positions in a window
  std::int64_t before;                         // of these, how many come before the window's own position
  std::span<const std::int32_t> lengths = {};  // what x holds from there on counts as 0; empty: time

  std::int64_t length(std::int64_t sequence) const {
    return lengths.empty() ? time : lengths[static_cast<std::size_t>(sequence)];
  }
};

// y[t, c window + k] = x[t + k - before, c], 0 outside the sequence: x (B T, C), y (B T, C window).
void windows_forward(MatrixView y, ConstMatrixView x, const WindowSizes& sizes);
void windows_backward(GradientView dx, ConstMatrixView dy, const WindowSizes& sizes);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
