// Pooling over the positions of a sequence.
//   forward    y[b] = sum_t w[b, t] x[b, t]
//   backward   dx[b, t] += w[b, t] dy[b]
//   saved: w
#include "engine/kernels/pool.h"

#include <algorithm>

#include "thimble/engine/gemm.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

void pool_weights(MatrixView weights, Pool kind, std::span<const std::int32_t> lengths) {
  for (std::int64_t b = 0; b < weights.rows; ++b) {
    const std::int64_t n = lengths.empty() ? weights.cols : lengths[static_cast<std::size_t>(b)];
    Real* w = weights.row(b);
    std::fill_n(w, weights.cols, Real{0});
    if (kind == Pool::mean) std::fill_n(w, n, Real{1} / static_cast<Real>(n));
    if (kind == Pool::first) w[0] = 1;
    if (kind == Pool::last) w[n - 1] = 1;
  }
}

void pool_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weights) {
  for (std::int64_t b = 0; b < y.rows; ++b) {
    gemm(y.row_block(b, 1), weights.row_block(b, 1), Op::none, x.row_block(b * weights.cols, weights.cols),
         Op::none);
  }
}

void pool_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView weights) {
  for (std::int64_t b = 0; b < dy.rows; ++b) {
    gemm_add(dx.row_block(b * weights.cols, weights.cols), weights.row_block(b, 1), Op::transpose,
             dy.row_block(b, 1), Op::none);
  }
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
