// Windows around every position, side by side as in torch.nn.Unfold, so that a convolution over time is a
// matrix product.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// The sizes of the windows.
struct UnfoldSizes {
  std::int64_t time;                           // positions of a sequence
  std::int64_t window;                         // positions in a window
  std::int64_t before;                         // positions of a window before the one it belongs to
  std::span<const std::int32_t> lengths = {};  // (B) x counts as 0 from there on; empty: all T

  std::int64_t length(std::int64_t sequence) const {
    return lengths.empty() ? time : lengths[static_cast<std::size_t>(sequence)];
  }
};

// Computes y[t, c window + k] = x[t + k - before, c], 0 outside the sequence: x (B T, C), y (B T, C window).
void unfold_forward(MatrixView y, ConstMatrixView x, const UnfoldSizes& sizes);
// Adds dx[t, c] += sum over k of dy[t - k + before, c window + k].
void unfold_backward(GradientView dx, ConstMatrixView dy, const UnfoldSizes& sizes);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
