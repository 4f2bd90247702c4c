// A matrix of its own for every head: of the general score (Luong et al. 2015, section 3.1).
//
// Columns are heads side by side: x (R, H D), y (R, H E). The rows of weight (H D, E) are the heads'
// matrices, one below the other.
#pragma once

#include <cstdint>

#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

void head_linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, std::int64_t heads);

// Adds to dx and dweight; a view without data is skipped.
void head_linear_backward(GradientView dx, GradientView dweight, ConstMatrixView dy, ConstMatrixView x,
                          ConstMatrixView weight, std::int64_t heads);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
