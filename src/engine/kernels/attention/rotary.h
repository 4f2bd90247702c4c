// Rotary position embedding (Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding",
// section 3.2.2), with the pairs of columns that a RotaryConfig says.
#pragma once

#include <cstdint>

#include "thimble/engine/matrix_view.h"
#include "thimble/engine/rotary_config.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// The columns that are rotated: first .. first + count - 1, in heads of d_key columns, an even number.
struct RotaryColumns {
  std::int64_t first = 0, count = 0, d_key = 0;
  RotaryPairs layout = RotaryPairs::pairs;
};

// Computes the table (T, 2 d_key) of T positions from first_position on: for every column of a head the
// factor of the column itself, then the factors of the other columns of the pairs.
void rotary_table(MatrixView table, std::int64_t first_position, const RotaryConfig& config = {});

// Rotates row r of x (B T, C) by row r mod T of the table, and copies the other columns: y (B T, C).
void rotary_forward(MatrixView y, ConstMatrixView x, ConstMatrixView table, const RotaryColumns& columns);

// Adds dy, rotated back, to dx.
void rotary_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView table,
                     const RotaryColumns& columns);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
