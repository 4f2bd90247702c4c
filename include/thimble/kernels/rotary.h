// Rotary position embedding (Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding",
// section 3.2.2), with neighbouring columns as pairs.
#pragma once

#include <cstdint>

#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Which columns turn: first .. first + count - 1, in heads of `depth`, an even number.
struct RotaryColumns {
  std::int64_t first = 0, count = 0, depth = 0;
};

// The angles of T positions from first_position on, for table (T, 2 depth): a row holds, for every column of
// a head, the factor of the column itself and then that of the other one of its pair.
void rotary_table(MatrixView table, std::int64_t first_position);

// y and x (B T, C): row r turns by row r mod T of the table. Columns that do not turn are copied.
void rotary_forward(MatrixView y, ConstMatrixView x, ConstMatrixView table, const RotaryColumns& columns);

void rotary_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView table,
                     const RotaryColumns& columns);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
