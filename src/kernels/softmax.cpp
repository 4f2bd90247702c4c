// Softmax, row by row.
//   forward    y_i = exp(x_i - m) / sum_j exp(x_j - m),  m = max_j x_j
//   backward   dx_i += y_i (dy_i - sum_j dy_j y_j),  from  dy_i / dx_j = y_i ([i = j] - y_j)
//   saved: y
#include "thimble/kernels/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cpp"
#include <hwy/foreach_target.h>

#include "kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

void softmax_forward(MatrixView y, ConstMatrixView x) {
  for (std::int64_t r = 0; r < y.rows; ++r) softmax_row(y.row(r), x.row(r), y.cols);
}

void softmax_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y) {
  for (std::int64_t r = 0; r < dx.rows; ++r) {
    const Real mean = dot(dy.row(r), y.row(r), y.cols);
    lanes(y.cols, [mean, empty = dx.uninitialized, to = dx.row(r), g = dy.row(r), p = y.row(r)](
                      auto d, std::int64_t i) HWY_ATTR {
      const auto centered = hn::Sub(hn::LoadU(d, g + i), hn::Set(d, mean));
      add_to(d, to + i, hn::Mul(hn::LoadU(d, p + i), centered), empty);
    });
  }
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, softmax_forward, (MatrixView y, ConstMatrixView x), y, x)
THIMBLE_DISPATCH(void, softmax_backward, (GradientView dx, ConstMatrixView dy, ConstMatrixView y), dx, dy, y)
