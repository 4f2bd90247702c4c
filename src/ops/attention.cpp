#include "thimble/ops/ops.h"

#include <cmath>

#include "thimble/core/error.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

bool same_source(const Columns& a, const Columns& b) {
  return a.source.value().data == b.source.value().data;
}

bool overlap(const Columns& a, const Columns& b) {
  return same_source(a, b) && a.first < b.first + b.count && b.first < a.first + a.count;
}

struct Gradients {
  GradientView v, q, k;  // in the order in which each head adds to them; no data: not wanted
};

// Keys and values, and the queries or not, may share a source. If they fill it, its sum is theirs together,
// and may be empty.
Gradients grad_sums(const Columns& v, const Columns& q, const Columns& k) {
  const auto wanted = [](const Columns& x) { return x.needs_grad() ? x.grad_sum() : GradientView{}; };
  const bool tied = overlap(q, k) && q.first == k.first && q.count == k.count, with_q = same_source(q, v);
  const bool apart = !overlap(k, v) && !overlap(q, v) && (tied || !overlap(q, k));
  const std::int64_t filled = v.count + k.count + (with_q && !tied ? q.count : 0);
  if (!same_source(k, v) || !apart || filled != v.source.shape().last() || !v.needs_grad())
    return {wanted(v), wanted(q), wanted(k)};
  const GradientView sum = v.source.grad_sum();
  const auto block = [&](const Columns& x) { return sum.column_block(x.first, x.count); };
  Gradients gradients{block(v), with_q ? block(q) : wanted(q), block(k)};
  if (tied) gradients.k.empty = false;  // the queries came first
  return gradients;
}

void check_options(const char* name, const AttentionOptions& options, const kernels::AttentionSizes& sizes) {
  require<ShapeError>(options.dropout >= 0 && options.dropout < 1,
                      "{}: the dropout probability is {}, it must be at least 0 and below 1", name,
                      options.dropout);
  require<ShapeError>(options.dropout == 0 || options.key.has_value(),
                      "{}: dropout of the weights needs a key", name);
  const auto& [causal, lengths, first_query, slopes] = options.mask;
  require<ShapeError>(lengths.empty() || std::ssize(lengths) == sizes.batch,
                      "{}: {} lengths for a batch of {}", name, lengths.size(), sizes.batch);
  const bool inside = std::ranges::all_of(lengths, [&](auto n) { return n >= 0 && n <= sizes.keys; });
  require<ShapeError>(inside, "{}: every length must be 0 .. {}", name, sizes.keys);
  require<ShapeError>(first_query >= 0 && (!causal || first_query + sizes.queries == sizes.keys),
                      "{}: {} queries, {} keys: a causal mask with query 0 at position {} needs {} keys",
                      name, sizes.queries, sizes.keys, first_query, first_query + sizes.queries);
  require<ShapeError>(slopes.empty() || std::ssize(slopes) == sizes.heads, "{}: {} slopes for {} heads", name,
                      slopes.size(), sizes.heads);
}

// What values are mixed with, once the weights are known.
struct Mixing {
  MatrixView weights, mixed, factor;
  bool replaced = false;  // the weights are those of a hook
};

Mixing finish_weights(Tape& tape, MatrixView weights, const kernels::AttentionSizes& sizes,
                      const AttentionOptions& options) {
  Mixing m{.weights = weights, .mixed = weights, .factor = {}};
  if (options.hooks != nullptr && options.site != nullptr) {
    const Shape shape{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
    m.replaced = options.hooks->replace(*options.site, shape, weights);
    options.hooks->observe(*options.site, shape, weights);
  }
  if (options.dropout > 0) {
    m.factor = tape.scratch(weights.rows, weights.cols);
    m.mixed = tape.scratch(weights.rows, weights.cols);
    kernels::dropout_factors(m.factor, options.dropout, *options.key, sizes.heads * sizes.queries);
    kernels::dropout_forward(m.mixed, weights, m.factor);
  }
  return m;
}

void check_shapes(const Columns& q, const Columns& k, const Columns& v, const AttentionOptions& options) {
  const Shape &sq = q.source.shape(), &sk = k.source.shape(), &sv = v.source.shape();
  require<ShapeError>(sq.rank() == 3 && sk.rank() == 3 && sv.rank() == 3 && sq[0] == sk[0] && sk[0] == sv[0],
                      "attention: q {}, k {}, v {}: all must be (batch, time, channels) of one batch", sq, sk,
                      sv);
  require<ShapeError>(sk[1] == sv[1], "attention: q {}, k {}, v {}: k and v need the same time", sq, sk, sv);
  const std::int64_t heads = options.heads, kv_heads = options.kv_heads > 0 ? options.kv_heads : heads;
  require<ShapeError>(heads > 0 && heads % kv_heads == 0 && q.count % heads == 0 && v.count % kv_heads == 0,
                      "attention: q {}, k {}, v {}: {} heads must divide the channels of q, {} of keys and "
                      "values the heads and the channels of v",
                      sq, sk, sv, heads, kv_heads);
  require<ShapeError>(
      k.count == q.count / heads * kv_heads,
      "attention: q {}, k {}, v {}: {} heads of q with {} channels in all and {} of k need {} "
      "channels of k, not {}",
      sq, sk, sv, heads, q.count, kv_heads, q.count / heads * kv_heads, k.count);
}

}  // namespace

Var attention(Columns q, Columns k, Columns v, const AttentionOptions& options) {
  check_shapes(q, k, v, options);
  const Shape &queries = q.source.shape(), &keys = k.source.shape();
  const kernels::AttentionSizes sizes{queries[0], queries[1], keys[1], options.heads, options.kv_heads};
  check_options("attention", options, sizes);
  const std::int64_t depth = q.count / sizes.heads, width = v.count / sizes.groups();
  const Real scale = options.scale.value_or(1 / std::sqrt(static_cast<Real>(depth)));
  const std::int64_t rows = sizes.batch * sizes.heads * sizes.queries;

  Tape& tape = q.source.tape();
  const Var y = tape.node("attention", {sizes.batch, sizes.queries, sizes.heads * width},
                          {q.source, k.source, v.source});
  const MatrixView weights = tape.scratch(rows, sizes.keys);
  const std::int64_t of_backward = y.needs_grad() ? sizes.queries * sizes.keys : 0;
  const MatrixView scratch = tape.scratch(1, std::max(depth, width) * sizes.keys + of_backward);
  kernels::attention_weights_forward(weights, q.value(), k.value(), scratch.data, sizes, options.mask, scale);

  const Mixing m = finish_weights(tape, weights, sizes, options);
  kernels::attention_mix_forward(y.value(), m.mixed, v.value(), sizes);
  tape.on_backward(y, [=] {
    Gradients d;
    if (!m.replaced) d = grad_sums(v, q, k);
    // Nothing flows to q and k; where they share v's source, their blocks must be zero.
    else if (v.needs_grad())
      d.v = v.grad();
    kernels::attention_backward(d.q, d.k, d.v, y.grad(), q.value(), k.value(), v.value(), m.weights, m.mixed,
                                m.factor, scratch.data, sizes, scale);
  });
  return y;
}

Var attend(Var scores, Columns v, const AttentionOptions& options) {
  const Shape shape = scores.shape(), values = v.shape();
  require<ShapeError>(
      shape.rank() == 4 && values.rank() == 3 && shape[0] == values[0] && shape[3] == values[1],
      "attend: scores {}, v {}: they must be (batch, heads, queries, keys) and (batch, keys, channels)",
      shape, values);
  const kernels::AttentionSizes sizes{shape[0], shape[2], shape[3], shape[1], options.kv_heads};
  require<ShapeError>(
      options.heads == sizes.heads && sizes.heads % sizes.groups() == 0 && v.count % sizes.groups() == 0,
      "attend: scores {}, v {}: {} heads, {} of values, which must divide the heads and the "
      "channels of v",
      shape, values, options.heads, sizes.groups());
  check_options("attend", options, sizes);
  const std::int64_t width = v.count / sizes.groups();
  Tape& tape = scores.tape();
  const Var y = tape.node("attend", {sizes.batch, sizes.queries, sizes.heads * width}, {scores, v.source});
  const MatrixView weights = tape.scratch(scores.value().rows, sizes.keys);
  const MatrixView scratch =  // of backward
      tape.scratch(1, y.needs_grad() ? (width + sizes.queries) * sizes.keys : 0);
  kernels::attention_softmax_forward(weights, scores.value(), sizes, options.mask);
  const Mixing m = finish_weights(tape, weights, sizes, options);
  kernels::attention_mix_forward(y.value(), m.mixed, v.value(), sizes);
  tape.on_backward(y, [=] {
    const auto wanted = [](const Columns& x) { return x.needs_grad() ? x.grad_sum() : GradientView{}; };
    const GradientView dv = wanted(v);
    kernels::attention_softmax_backward(m.replaced ? GradientView{} : wanted(scores), dv, y.grad(), v.value(),
                                        m.weights, m.mixed, m.factor, scratch.data, sizes);
  });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
