// The parts of matrices that belong to one head of one sequence.
#pragma once

#include <cstdint>

#include "thimble/kernels/attention_sizes.h"
#include "thimble/tensor/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Returns the columns of a head: (R, C) of (R, heads C).
template <class View>
View columns_of(View x, std::int64_t head, std::int64_t heads) {
  const std::int64_t columns = x.cols / heads;
  return x.column_block(head * columns, columns);
}

// Returns the block of a head in a sequence of `length` rows: (length, C) of (B length, heads C).
template <class View>
View block(View x, std::int64_t sequence, std::int64_t length, std::int64_t head, std::int64_t heads) {
  return columns_of(x.row_block(sequence * length, length), head, heads);
}

// Returns the block of k or v that a head reads: (Tk, C) of (B Tk, KV C).
template <class View>
View kv_block(View x, std::int64_t sequence, std::int64_t head, const AttentionSizes& s) {
  return block(x, sequence, s.keys, head / s.heads_per_kv_head(), s.kv_heads);
}

// Returns the rows of a head in scores or weights: (Tq, Tk) of (B H Tq, Tk).
template <class View>
View weights_block(View weights, std::int64_t sequence, std::int64_t head, const AttentionSizes& s) {
  return weights.row_block((sequence * s.heads + head) * s.queries, s.queries);
}

// Calls f(sequence, head) for every head of every sequence.
template <class F>
void each_head(const AttentionSizes& s, const F& f) {
  for (std::int64_t i = 0; i < s.batch * s.heads; ++i) f(i / s.heads, i % s.heads);
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
