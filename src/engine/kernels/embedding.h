// Embeddings of tokens and of positions.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Computes y[r] = table[tokens[r]]: y (R, C), table (V, C), R tokens in 0 .. V-1 (the caller checks).
void embedding_forward(MatrixView y, ConstMatrixView table, std::span<const std::int32_t> tokens);
// Adds dtable[tokens[r]] += dy[r].
void embedding_backward(MatrixView dtable, ConstMatrixView dy, std::span<const std::int32_t> tokens);

// Computes y[b, t] = x[b, t] + positions[t]: x, y (B T, C), positions (at least T, C).
void add_positions_forward(MatrixView y, ConstMatrixView x, ConstMatrixView positions, std::int64_t length);
// Adds dpositions[t] += sum over b of dy[b, t].
void add_positions_backward(MatrixView dpositions, ConstMatrixView dy, std::int64_t length);

// Computes sinusoidal positions (T, C) (Vaswani et al. 2017, section 3.5):
// p[t, 2i] = sin(t / 10000^(2i/C)),  p[t, 2i+1] = cos(t / 10000^(2i/C)).
void sinusoidal_positions(MatrixView positions);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
