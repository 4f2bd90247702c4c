// One matrix per head h.
//   forward    y_h = x_h W_h
//   backward   dx_h += dy_h W_h^T,  dW_h += x_h^T dy_h
//   saved: nothing but x and W
#include "engine/kernels/attention/head_linear.h"

#include "engine/kernels/attention/blocks.h"
#include "thimble/engine/gemm.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

namespace {

// Returns the matrix (D, E) of a head.
template <class View>
View matrix_of(View weight, std::int64_t head, std::int64_t heads) {
  const std::int64_t rows = weight.rows / heads;
  return weight.row_block(head * rows, rows);
}

}  // namespace

void head_linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, std::int64_t heads) {
  for (std::int64_t h = 0; h < heads; ++h) {
    gemm(columns_of(y, h, heads), columns_of(x, h, heads), Op::none, matrix_of(weight, h, heads), Op::none);
  }
}

void head_linear_backward(GradientView dx, GradientView dweight, ConstMatrixView dy, ConstMatrixView x,
                          ConstMatrixView weight, std::int64_t heads) {
  for (std::int64_t h = 0; h < heads; ++h) {
    const ConstMatrixView g = columns_of(dy, h, heads);
    gemm_add(columns_of(dx, h, heads), g, Op::none, matrix_of(weight, h, heads), Op::transpose);
    gemm_add(matrix_of(dweight, h, heads), columns_of(x, h, heads), Op::transpose, g, Op::none);
  }
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
