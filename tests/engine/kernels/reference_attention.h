// The kernels of attention and its scores as plain loops; see reference.h.
#pragma once

#include "engine/kernels/attention/attention.h"
#include "engine/kernels/attention/rotary.h"
#include "engine/kernels/reference.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace reference {

using kernels::AttentionMask, kernels::RotaryColumns;

// Calls f(sequence, head) for every head of every sequence.
template <class F>
void each_head(const AttentionSizes& s, const F& f) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h) f(b, h);
}
// Returns the rows of a sequence and the columns of a head.
template <class View>
View block(View x, std::int64_t b, std::int64_t h, std::int64_t batch, std::int64_t heads) {
  const std::int64_t length = x.rows / batch, columns = x.cols / heads;
  x.data += b * length * x.stride + h * columns;
  x.rows = length;
  x.cols = columns;
  return x;
}
template <class View>
View kv_block(View x, std::int64_t b, std::int64_t h, const AttentionSizes& s) {
  return block(x, b, h * s.kv_heads / s.heads, s.batch, s.kv_heads);
}
template <class View>
View weights_block(View x, std::int64_t b, std::int64_t h, const AttentionSizes& s) {
  return block(x, b * s.heads + h, 0, s.batch * s.heads, 1);
}

inline std::int64_t visible_keys(const AttentionMask& mask, std::int64_t b, std::int64_t i,
                                 const AttentionSizes& s) {
  const std::int64_t visible = mask.causal ? std::min(i + 1, s.keys) : s.keys;
  return mask.lengths.empty() ? visible
                              : std::min<std::int64_t>(visible, mask.lengths[static_cast<std::size_t>(b)]);
}

inline void attention_weights_forward(auto weights, auto q, auto k, auto*, const AttentionSizes& s,
                                      const AttentionMask& mask, auto scale) {
  each_head(s, [&](auto b, auto h) {
    const auto qh = block(q, b, h, s.batch, s.heads), kh = kv_block(k, b, h, s);
    const auto p = weights_block(weights, b, h, s);
    each(p, [&](auto i, auto j) {
      at(p, i, j) = scale * sum(qh.cols, [&](auto c) { return at(qh, i, c) * at(kh, j, c); });
    });
    for (std::int64_t i = 0; i < p.rows; ++i) {
      const std::int64_t visible = visible_keys(mask, b, i, s);
      if (s.softmax) softmax_row(p.row(i), p.row(i), visible);
      std::fill(p.row(i) + visible, p.row(i) + s.keys, 0);
    }
  });
}
inline void attention_apply_forward(auto out, auto weights, auto v, const AttentionSizes& s) {
  each_head(s, [&](auto b, auto h) {
    const auto p = weights_block(weights, b, h, s);
    const auto vh = kv_block(v, b, h, s);
    const auto o = block(out, b, h, s.batch, s.heads);
    each(o, [&](auto i, auto c) {
      at(o, i, c) = sum(s.keys, [&](auto j) { return at(p, i, j) * at(vh, j, c); });
    });
  });
}
inline void attention_backward(auto dq, auto dk, auto dv, auto dout, auto q, auto k, auto v, auto weights,
                               auto dropped_weights, auto dropout, auto* scratch, const AttentionSizes& s,
                               const AttentionMask& mask, auto scale) {
  using T = std::remove_pointer_t<decltype(scratch)>;
  const BasicMatrixView<T> ds{scratch, s.queries, s.keys, s.keys};
  each_head(s, [&](auto b, auto h) {
    const auto g = block(dout, b, h, s.batch, s.heads), qh = block(q, b, h, s.batch, s.heads);
    const auto kh = kv_block(k, b, h, s), vh = kv_block(v, b, h, s);
    const auto p = weights_block(weights, b, h, s), m = weights_block(dropped_weights, b, h, s);
    each(ds, [&](auto i, auto j) {
      at(ds, i, j) = sum(g.cols, [&](auto c) { return at(g, i, c) * at(vh, j, c); });
      if (dropout.data != nullptr) at(ds, i, j) *= at(weights_block(dropout, b, h, s), i, j);
    });
    for (std::int64_t i = 0; i < s.queries; ++i) {
      if (!s.softmax) {
        std::fill(ds.row(i) + visible_keys(mask, b, i, s), ds.row(i) + s.keys, 0);
        continue;
      }
      const T mean = sum(s.keys, [&](auto j) { return at(ds, i, j) * at(p, i, j); });
      for (std::int64_t j = 0; j < s.keys; ++j) at(ds, i, j) = at(p, i, j) * (at(ds, i, j) - mean);
    }
    const auto to_q = block(dq, b, h, s.batch, s.heads);
    const auto to_k = kv_block(dk, b, h, s), to_v = kv_block(dv, b, h, s);
    each(to_q, [&](auto i, auto c) {
      add(to_q, i, c, scale * sum(s.keys, [&](auto j) { return at(ds, i, j) * at(kh, j, c); }));
    });
    each(to_k, [&](auto j, auto c) {
      add(to_k, j, c, scale * sum(s.queries, [&](auto i) { return at(ds, i, j) * at(qh, i, c); }));
    });
    each(to_v, [&](auto j, auto c) {
      add(to_v, j, c, sum(s.queries, [&](auto i) { return at(m, i, j) * at(g, i, c); }));
    });
  });
}

inline void head_linear_forward(auto y, auto x, auto weight, std::int64_t heads) {
  const std::int64_t in = x.cols / heads, out = y.cols / heads;
  each(y, [&](auto r, auto c) {
    const std::int64_t first = c / out * in;
    at(y, r, c) = sum(in, [&](auto i) { return at(x, r, first + i) * at(weight, first + i, c % out); });
  });
}
inline void head_linear_backward(auto dx, auto dweight, auto dy, auto x, auto weight, std::int64_t heads) {
  const std::int64_t in = x.cols / heads, out = dy.cols / heads;
  each(dx, [&](auto r, auto i) {
    add(dx, r, i, sum(out, [&](auto e) { return at(dy, r, i / in * out + e) * at(weight, i, e); }));
  });
  each(dweight, [&](auto i, auto e) {
    add(dweight, i, e, sum(dy.rows, [&](auto r) { return at(x, r, i) * at(dy, r, i / in * out + e); }));
  });
}

inline void head_norm_forward(auto y, auto rrms, auto x, std::int64_t heads, auto epsilon) {
  const std::int64_t n = x.cols / heads;
  each(rrms, [&](auto r, auto h) {
    const auto squares = sum(n, [&](auto c) { return at(x, r, h * n + c) * at(x, r, h * n + c); });
    at(rrms, r, h) = 1 / std::sqrt(squares / static_cast<Number<decltype(x)>>(n) + epsilon);
  });
  each(y, [&](auto r, auto c) { at(y, r, c) = at(x, r, c) * at(rrms, r, c / n); });
}
inline void head_norm_backward(auto dx, auto dy, auto y, auto rrms, std::int64_t heads) {
  const std::int64_t n = y.cols / heads;
  each(dx, [&](auto r, auto c) {
    const auto products = sum(n, [&](auto k) { return at(dy, r, c / n * n + k) * at(y, r, c / n * n + k); });
    const auto mean = products / static_cast<Number<decltype(y)>>(n);
    add(dx, r, c, at(rrms, r, c / n) * (at(dy, r, c) - at(y, r, c) * mean));
  });
}

// Returns column c of row r of x, rotated by the angle of the table times direction.
inline auto turned(auto x, std::int64_t r, std::int64_t c, auto table, const RotaryColumns& columns,
                   int direction) {
  using T = Number<decltype(x)>;
  if (c < columns.first || c >= columns.first + columns.count) return T(at(x, r, c));
  const bool halves = columns.layout == RotaryPairs::halves;
  const std::int64_t in_head = (c - columns.first) % columns.d_key, distance = halves ? columns.d_key / 2 : 1;
  const bool is_second = in_head / distance % 2 == 1;
  const std::int64_t second = is_second ? in_head : in_head + distance;
  const T cosine = at(table, r % table.rows, second);
  const T sine = direction * at(table, r % table.rows, columns.d_key + second);
  return at(x, r, c) * cosine +
         at(x, r, is_second ? c - distance : c + distance) * (is_second ? sine : -sine);
}
inline void rotary_forward(auto y, auto x, auto table, const RotaryColumns& columns) {
  each(y, [&](auto r, auto c) { at(y, r, c) = turned(x, r, c, table, columns, 1); });
}
inline void rotary_backward(auto dx, auto dy, auto table, const RotaryColumns& columns) {
  each(dx, [&](auto r, auto c) { add(dx, r, c, turned(dy, r, c, table, columns, -1)); });
}

inline void additive_score_forward(auto scores, auto q, auto k, auto weight, auto*, const AttentionSizes& s) {
  each_head(s, [&](auto b, auto h) {
    const auto to = weights_block(scores, b, h, s);
    const auto qh = block(q, b, h, s.batch, s.heads), kh = kv_block(k, b, h, s);
    each(to, [&](auto i, auto j) {
      at(to, i, j) =
          sum(weight.cols, [&](auto d) { return at(weight, h, d) * std::tanh(at(qh, i, d) + at(kh, j, d)); });
    });
  });
}
inline void additive_score_backward(auto dq, auto dk, auto dweight, auto dscores, auto q, auto k, auto weight,
                                    auto*, const AttentionSizes& s) {
  each_head(s, [&](auto b, auto h) {
    const auto ds = weights_block(dscores, b, h, s);
    const auto qh = block(q, b, h, s.batch, s.heads), kh = kv_block(k, b, h, s);
    const auto to_q = block(dq, b, h, s.batch, s.heads), to_k = kv_block(dk, b, h, s);
    each(ds, [&](auto i, auto j) {
      for (std::int64_t d = 0; d < weight.cols; ++d) {
        const auto g = at(ds, i, j);
        const auto t = std::tanh(at(qh, i, d) + at(kh, j, d)), slope = g * at(weight, h, d) * (1 - t * t);
        at(to_q, i, d) += slope;
        at(to_k, j, d) += slope;
        at(dweight, h, d) += g * t;
      }
    });
  });
}

}  // namespace reference
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
