// Affine map.
//   forward    y = x W^T + b
//   backward   dx += dy W,  dW += dy^T x,  db += sum of the rows of dy
//   saved: nothing but x and W
#include "engine/kernels/products/linear.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/products/linear.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

void add_column_sums(MatrixView sums, ConstMatrixView x) {
  // Eight rows per pass, so that the sums are loaded and stored once for all of them.
  constexpr std::int64_t kRows = 8;
  std::int64_t r = 0;
  for (; r + kRows <= x.rows; r += kRows) {
    lanes(x.cols, [&, to = sums.data, from = x.row(r)](auto d, std::int64_t i) HWY_ATTR {
      auto sum = load(d, from + i);
      for (std::int64_t k = 1; k < kRows; ++k) sum = hn::Add(sum, load(d, from + k * x.stride + i));
      store(hn::Add(load(d, to + i), sum), d, to + i);
    });
  }
  for (; r < x.rows; ++r) {
    lanes(x.cols, [to = sums.data, from = x.row(r)](auto d, std::int64_t i)
                      HWY_ATTR { store(hn::Add(load(d, to + i), load(d, from + i)), d, to + i); });
  }
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

HWY_EXPORT(add_column_sums);

void linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, PackedView packed,
                    ConstMatrixView bias) {
  if (packed.data != nullptr) return gemm_packed(y, bias, x, packed);
  if (bias.data != nullptr)
    for (std::int64_t r = 0; r < y.rows; ++r) std::copy_n(bias.data, y.cols, y.row(r));
  gemm_add({y, bias.data == nullptr}, x, Op::none, weight, Op::transpose);
}

void linear_backward(GradientView dx, GradientView dweight, MatrixView dbias, ConstMatrixView dy,
                     ConstMatrixView x, ConstMatrixView weight, PackedView packed) {
  if (packed.data == nullptr) {
    gemm_add(dx, dy, Op::none, weight, Op::none);
  } else if (dx.data != nullptr) {
    gemm_packed(dx, dx.uninitialized ? ConstMatrixView{} : dx, dy, packed);
  }
  gemm_add(dweight, dy, Op::transpose, x, Op::none);
  if (dbias.data != nullptr) HWY_DYNAMIC_DISPATCH(add_column_sums)(dbias, dy);
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
#endif  // HWY_ONCE
