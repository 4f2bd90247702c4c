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

// Returns the queries of a block, at most.
inline std::int64_t block_rows(const AttentionPass& a) {
  return a.block == 0 ? a.sizes.queries : std::min(a.block, a.sizes.queries);
}

// Calls f(block) for the blocks of queries of a sequence.
template <class F>
void each_query_block(const AttentionPass& a, std::int64_t sequence, const F& f) {
  const AttentionSizes& s = a.sizes;
  for (std::int64_t first = 0; first < s.queries; first += block_rows(a)) {
    QueryBlock some{first, std::min(block_rows(a), s.queries - first), s.keys, a.mask};
    some.mask.first_query += first;
    if (a.block > 0) some.keys = some.mask.visible(sequence, some.rows - 1, s.keys);
    f(some);
  }
}

// Returns the rows of a block in weights, and the columns of its keys: (rows, keys) of (B H Tq, Tk).
template <class View>
View weights_block(View weights, std::int64_t sequence, std::int64_t head, const AttentionSizes& s,
                   const QueryBlock& r) {
  return weights_block(weights, sequence, head, s).row_block(r.first, r.rows).column_block(0, r.keys);
}

// Where the parts of a pass's scratch memory begin: scale K^T (Dk, Tk), then V^T (Dv, Tk) in a backward pass, then
// blocks of weights, of their products and of their dropout, if the pass has them.
struct ScratchParts {
  std::int64_t v_transposed, weights, product, factors, end;

  ScratchParts(const AttentionPass& a, bool backward)
      : v_transposed(a.sizes.d_key * a.sizes.keys),
        weights(v_transposed + (backward ? a.sizes.d_value * a.sizes.keys : 0)),
        product(weights + (a.keeps ? 0 : block_rows(a) * a.sizes.keys)),
        factors(product + (a.keeps || backward ? block_rows(a) * a.sizes.keys : 0)),
        end(factors + (a.key && !a.keeps ? block_rows(a) * a.sizes.keys : 0)) {}
};

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
