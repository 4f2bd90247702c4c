// Softmax, row by row.
//   forward    y_i = exp(x_i - m) / sum_j exp(x_j - m),  m = max_j x_j
//   backward   dx_i += y_i (dy_i - sum_j dy_j y_j),  from  dy_i / dx_j = y_i ([i = j] - y_j)
//   saved: y
#include "engine/kernels/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/softmax.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

void softmax_forward(MatrixView y, ConstMatrixView x) {
  softmax_rows(y, x, [n = y.cols](std::int64_t) { return n; });
}

void softmax_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView y) {
  softmax_rows_backward(dx, dy, y, 1);
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, softmax_forward, (MatrixView y, ConstMatrixView x), y, x)
THIMBLE_DISPATCH(void, softmax_backward, (GradientView dx, ConstMatrixView dy, ConstMatrixView y), dx, dy, y)
