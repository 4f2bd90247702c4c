// The loops of what scores are made of; see naive.h.
#pragma once

#include "naive.h"
#include "thimble/kernels/additive_score.h"
#include "thimble/kernels/head_linear.h"
#include "thimble/kernels/rotary.h"

namespace thimble::inline THIMBLE_PRECISION::naive {

using kernels::RotaryColumns;

inline void head_linear_forward(MatrixView y, ConstMatrixView x, ConstMatrixView weight, std::int64_t heads) {
  const std::int64_t in = x.cols / heads, out = y.cols / heads;
  each(y, [&](auto r, auto c) {
    const std::int64_t first = c / out * in;
    at(y, r, c) = sum(in, [&](auto i) { return at(x, r, first + i) * at(weight, first + i, c % out); });
  });
}
inline void head_linear_backward(GradientView dx, GradientView dweight, ConstMatrixView dy, ConstMatrixView x,
                                 ConstMatrixView weight, std::int64_t heads) {
  const std::int64_t in = x.cols / heads, out = dy.cols / heads;
  each(dx, [&](auto r, auto i) {
    add(dx, r, i, sum(out, [&](auto e) { return at(dy, r, i / in * out + e) * at(weight, i, e); }));
  });
  each(dweight, [&](auto i, auto e) {
    add(dweight, i, e, sum(dy.rows, [&](auto r) { return at(x, r, i) * at(dy, r, i / in * out + e); }));
  });
}

// Column c of row r of x, turned by the angle of the table times direction.
inline Real turned(ConstMatrixView x, std::int64_t r, std::int64_t c, ConstMatrixView table,
                   const RotaryColumns& columns, Real direction) {
  if (c < columns.first || c >= columns.first + columns.count) return at(x, r, c);
  const std::int64_t in_head = (c - columns.first) % columns.depth, even = in_head / 2 * 2;
  const bool odd = in_head > even;
  const Real cosine = at(table, r % table.rows, even);
  const Real sine = direction * at(table, r % table.rows, columns.depth + even + 1);
  return at(x, r, c) * cosine + at(x, r, odd ? c - 1 : c + 1) * (odd ? sine : -sine);
}
inline void rotary_forward(MatrixView y, ConstMatrixView x, ConstMatrixView table,
                           const RotaryColumns& columns) {
  each(y, [&](auto r, auto c) { at(y, r, c) = turned(x, r, c, table, columns, 1); });
}
inline void rotary_backward(GradientView dx, ConstMatrixView dy, ConstMatrixView table,
                            const RotaryColumns& columns) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, turned(dy, r, c, table, columns, -1)); });
}

// f(r, j, h, query, key) for every score: its row and column, its head, and what it compares.
template <class F>
void each_score(ConstMatrixView q, ConstMatrixView k, const AttentionSizes& s, const F& f) {
  const std::int64_t depth = q.cols / s.heads;
  for (std::int64_t r = 0; r < s.batch * s.heads * s.queries; ++r) {
    const std::int64_t i = r % s.queries, h = r / s.queries % s.heads, b = r / s.queries / s.heads;
    for (std::int64_t j = 0; j < s.keys; ++j) {
      f(r, j, h, q.row(b * s.queries + i) + h * depth,
        k.row(b * s.keys + j) + h * s.kv_heads / s.heads * depth);
    }
  }
}

inline void additive_score_forward(MatrixView scores, ConstMatrixView q, ConstMatrixView k,
                                   ConstMatrixView weight, Real*, const AttentionSizes& s) {
  each_score(q, k, s, [&](auto r, auto j, auto h, const Real* query, const Real* key) {
    at(scores, r, j) =
        sum(weight.cols, [&](auto d) { return at(weight, h, d) * std::tanh(query[d] + key[d]); });
  });
}
inline void additive_score_backward(MatrixView dq, MatrixView dk, MatrixView dweight, ConstMatrixView dscores,
                                    ConstMatrixView q, ConstMatrixView k, ConstMatrixView weight, Real*,
                                    const AttentionSizes& s) {
  each_score(q, k, s, [&](auto r, auto j, auto h, const Real* query, const Real* key) {
    // Where the gradients of query and key are, relative to their matrices.
    const std::ptrdiff_t query_at = query - q.data, key_at = key - k.data;
    for (std::int64_t d = 0; d < weight.cols; ++d) {
      const Real t = std::tanh(query[d] + key[d]), g = at(dscores, r, j);
      dq.data[query_at + d] += g * at(weight, h, d) * (1 - t * t);
      dk.data[key_at + d] += g * at(weight, h, d) * (1 - t * t);
      at(dweight, h, d) += g * t;
    }
  });
}

}  // namespace thimble::inline THIMBLE_PRECISION::naive
