// The parts of matrices that belong to one head of one sequence, and the blocks of its queries.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/kernels/attention/attention.h"
#include "thimble/engine/attention_sizes.h"
#include "thimble/engine/matrix_view.h"

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

// Some queries of a sequence.
struct QueryBlock {
  std::int64_t first, rows;
  std::int64_t keys;   // that the last query attends to, the most of all
  AttentionMask mask;  // of queries that are counted from `first`
};

inline constexpr std::int64_t kQueryBlock = 32;  // rows; their weights on 2048 keys fit a core's cache

// Calls f(block) for the blocks of queries of a sequence.
template <class F>
void each_query_block(const AttentionSizes& s, const AttentionMask& mask, std::int64_t sequence, const F& f) {
  for (std::int64_t first = 0; first < s.queries; first += kQueryBlock) {
    QueryBlock some{first, std::min(kQueryBlock, s.queries - first), 0, mask};
    some.mask.first_query += first;
    some.keys = some.mask.visible(sequence, some.rows - 1, s.keys);
    f(some);
  }
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
