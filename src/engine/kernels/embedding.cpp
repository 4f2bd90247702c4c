// Embeddings of tokens and of positions.
//   embedding    y[r] = table[token[r]]        backward   dtable[token[r]] += dy[r]
//   positions    y[b, t] = x[b, t] + p[t]      backward   dx += dy,  dp[t] += sum_b dy[b, t]
//   saved: the tokens
#include "engine/kernels/embedding.h"

#include <algorithm>

#include "engine/core/portable_math.h"
#include "engine/kernels/elementwise.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

void embedding_forward(MatrixView y, ConstMatrixView table, std::span<const std::int32_t> tokens) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    std::copy_n(table.row(tokens[static_cast<std::size_t>(r)]), y.cols, y.row(r));
  }
}

void embedding_backward(MatrixView dtable, ConstMatrixView dy, std::span<const std::int32_t> tokens) {
  for (std::int64_t r = 0; r < dy.rows; ++r) {
    accumulate(dtable.row_block(tokens[static_cast<std::size_t>(r)], 1), dy.row_block(r, 1));
  }
}

void add_positions_forward(MatrixView y, ConstMatrixView x, ConstMatrixView positions, std::int64_t length) {
  for (std::int64_t first = 0; first < y.rows; first += length) {
    add_forward(y.row_block(first, length), x.row_block(first, length), positions.row_block(0, length));
  }
}

void add_positions_backward(MatrixView dpositions, ConstMatrixView dy, std::int64_t length) {
  for (std::int64_t first = 0; first < dy.rows; first += length) {
    accumulate(dpositions.row_block(0, length), dy.row_block(first, length));
  }
}

void sinusoidal_positions(MatrixView positions) {
  for (std::int64_t t = 0; t < positions.rows; ++t) {
    for (std::int64_t c = 0; c < positions.cols; ++c) {
      const double exponent = static_cast<double>(c - c % 2) / static_cast<double>(positions.cols);
      const double angle = static_cast<double>(t) / portable::pow(10000.0, exponent);
      positions.row(t)[c] = static_cast<Real>(c % 2 == 0 ? portable::sin(angle) : portable::cos(angle));
    }
  }
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
