// Affine map.
//   forward    y = x W^T + b
//   backward   dx += dy W,  dW += dy^T x,  db += sum of the rows of dy
//   saved: nothing but x and W
#include "thimble/kernels/linear.h"

#include "thimble/kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linear.cpp"
#include <hwy/foreach_target.h>

#include "kernels/small_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

void fill_rows(MatrixView y, ConstMatrixView row) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    lanes(y.cols, [to = y.row(r), from = row.data](auto d, std::int64_t i)
                      HWY_ATTR { hn::StoreU(hn::LoadU(d, from + i), d, to + i); });
  }
}

void transpose_matrix(MatrixView to, ConstMatrixView from) {
  transpose(to.data, from.data, from.stride, from.rows, from.cols);
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

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

HWY_EXPORT(fill_rows);
HWY_EXPORT(add_column_sums);
HWY_EXPORT(transpose_matrix);

void transpose(MatrixView to, ConstMatrixView from) { HWY_DYNAMIC_DISPATCH(transpose_matrix)(to, from); }

bool wants_transposed() { return cuts_products(); }

void linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, ConstMatrixView transposed,
                    ConstMatrixView bias) {
  const bool ready = transposed.data != nullptr;
  const std::int64_t part = ready ? rows_per_part(y.cols, x.cols) : y.rows;
  for (std::int64_t first = 0; first < y.rows; first += part) {
    const std::int64_t count = std::min(part, y.rows - first);
    const MatrixView to = y.row_block(first, count);
    // Adds the product to rows of the bias that are in cache, which saves a pass over y.
    if (bias.data != nullptr) HWY_DYNAMIC_DISPATCH(fill_rows)(to, bias);
    gemm(to, x.row_block(first, count), Op::none, ready ? transposed : weight,
         ready ? Op::none : Op::transpose, 1, bias.data != nullptr ? 1 : 0);
  }
}

void linear_backward(GradientView dx, GradientView dweight, MatrixView dbias, ConstMatrixView dy,
                     ConstMatrixView x, ConstMatrixView weight) {
  gemm_add(dx, dy, Op::none, weight, Op::none);
  gemm_add(dweight, dy, Op::transpose, x, Op::none);
  if (dbias.data != nullptr) HWY_DYNAMIC_DISPATCH(add_column_sums)(dbias, dy);
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
#endif  // HWY_ONCE
