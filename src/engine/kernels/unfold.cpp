// Windows over time, for every channel.
//   forward    y[t, c, k] = x[t + k - before, c], or 0 outside the sequence
//   backward   dx[t, c] += sum_k dy[t - k + before, c, k]
//   saved: nothing
#include "engine/kernels/unfold.h"

#include <algorithm>

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

void unfold_forward(MatrixView y, ConstMatrixView x, const UnfoldSizes& s) {
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const std::int64_t sequence = row / s.time, first = sequence * s.time, t = row % s.time;
    Real* to = y.row(row);
    for (std::int64_t k = 0; k < s.window; ++k) {
      const std::int64_t from = t + k - s.before;
      const bool inside = from >= 0 && from < s.length(sequence);
      for (std::int64_t c = 0; c < x.cols; ++c) to[c * s.window + k] = inside ? x.row(first + from)[c] : 0;
    }
  }
}

void unfold_backward(GradientView dx, ConstMatrixView dy, const UnfoldSizes& s) {
  for (std::int64_t row = 0; row < dx.rows; ++row) {
    const std::int64_t sequence = row / s.time, first = sequence * s.time, t = row % s.time;
    Real* to = dx.row(row);
    if (dx.uninitialized) std::fill_n(to, dx.cols, Real{0});
    if (t >= s.length(sequence)) continue;
    for (std::int64_t k = 0; k < s.window; ++k) {
      const std::int64_t from = t - k + s.before;
      if (from < 0 || from >= s.time) continue;
      const Real* g = dy.row(first + from);
      for (std::int64_t c = 0; c < dx.cols; ++c) to[c] += g[c * s.window + k];
    }
  }
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
