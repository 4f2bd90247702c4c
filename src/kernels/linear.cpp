// Affine map.
//   forward    y = x W^T + b
//   backward   dx += dy W,  dW += dy^T x,  db += sum of the rows of dy
//   saved: nothing but x and W
#include "thimble/kernels/linear.h"

#include "thimble/kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear.cpp"
#include <hwy/foreach_target.h>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE {

void fill_rows(MatrixView y, ConstMatrixView row) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    lanes(y.cols, [to = y.row(r), from = row.data](auto d, std::int64_t i)
                      HWY_ATTR { hn::StoreU(hn::LoadU(d, from + i), d, to + i); });
  }
}

void add_column_sums(MatrixView sums, ConstMatrixView x) {
  // Eight rows per pass, so that the sums are loaded and stored once for all of them.
  constexpr std::int64_t kRows = 8;
  std::int64_t r = 0;
  for (; r + kRows <= x.rows; r += kRows) {
    lanes(x.cols, [&, to = sums.data, from = x.row(r)](auto d, std::int64_t i) HWY_ATTR {
      auto sum = hn::LoadU(d, from + i);
      for (std::int64_t k = 1; k < kRows; ++k) sum = hn::Add(sum, hn::LoadU(d, from + k * x.stride + i));
      hn::StoreU(hn::Add(hn::LoadU(d, to + i), sum), d, to + i);
    });
  }
  for (; r < x.rows; ++r) {
    lanes(x.cols, [to = sums.data, from = x.row(r)](auto d, std::int64_t i) HWY_ATTR {
      hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
    });
  }
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble::inline THIMBLE_PRECISION::kernels {

HWY_EXPORT(fill_rows);
HWY_EXPORT(add_column_sums);

void linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, ConstMatrixView bias) {
  // The product is added to the bias, which saves a pass over y.
  const bool biased = bias.data != nullptr;
  if (biased) HWY_DYNAMIC_DISPATCH(fill_rows)(y, bias);
  gemm(y, x, Op::none, weight, Op::transpose, 1, biased ? 1 : 0);
}

void linear_backward(MatrixView dx, MatrixView dweight, MatrixView dbias, ConstMatrixView dy,
                     ConstMatrixView x, ConstMatrixView weight) {
  if (dx.data != nullptr) gemm(dx, dy, Op::none, weight, Op::none, 1, 1);
  if (dweight.data != nullptr) gemm(dweight, dy, Op::transpose, x, Op::none, 1, 1);
  if (dbias.data != nullptr) HWY_DYNAMIC_DISPATCH(add_column_sums)(dbias, dy);
}

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
#endif  // HWY_ONCE
