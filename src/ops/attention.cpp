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

void check_options(const AttentionOptions& options, std::int64_t batch, std::int64_t keys) {
  require<ShapeError>(options.dropout >= 0 && options.dropout < 1,
                      "attention: the dropout probability is {}, it must be at least 0 and below 1",
                      options.dropout);
  require<ShapeError>(options.dropout == 0 || options.key.has_value(),
                      "attention: dropout of the weights needs a key");
  const auto& lengths = options.mask.lengths;
  require<ShapeError>(lengths.empty() || static_cast<std::int64_t>(lengths.size()) == batch,
                      "attention: {} lengths for a batch of {}", lengths.size(), batch);
  const bool inside = std::ranges::all_of(lengths, [=](auto n) { return n >= 0 && n <= keys; });
  require<ShapeError>(inside, "attention: every length must be 0 .. {}", keys);
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
  const auto& mask = options.mask;
  require<ShapeError>(mask.first_query >= 0 && (!mask.causal || mask.first_query + sq[1] == sk[1]),
                      "attention: q {}, k {}, v {}: a causal mask with query 0 at position {} needs {} keys",
                      sq, sk, sv, mask.first_query, mask.first_query + sq[1]);
  check_options(options, sq[0], sk[1]);
}

}  // namespace

Var attention(Columns q, Columns k, Columns v, const AttentionOptions& options) {
  check_shapes(q, k, v, options);
  const Shape &queries = q.source.shape(), &keys = k.source.shape();
  const kernels::AttentionSizes sizes{queries[0], queries[1], keys[1], options.heads, options.kv_heads};
  const std::int64_t depth = q.count / sizes.heads, width = v.count / sizes.groups();
  const Real scale = options.scale.value_or(1 / std::sqrt(static_cast<Real>(depth)));
  const std::int64_t rows = sizes.batch * sizes.heads * sizes.queries;

  Tape& tape = q.source.tape();
  const Var y = tape.node("attention", {sizes.batch, sizes.queries, sizes.heads * width},
                          {q.source, k.source, v.source});
  const MatrixView weights = tape.scratch(rows, sizes.keys);
  const MatrixView scratch =
      tape.scratch(1, std::max(depth, width) * sizes.keys + sizes.queries * sizes.keys);
  kernels::attention_weights_forward(weights, q.value(), k.value(), scratch.data, sizes, options.mask, scale);

  bool replaced = false;
  if (options.hooks != nullptr && options.site != nullptr) {
    const Shape shape{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
    replaced = options.hooks->replace(*options.site, shape, weights);
    options.hooks->observe(*options.site, shape, weights);
  }

  MatrixView mixed = weights, factor;
  if (options.dropout > 0) {
    factor = tape.scratch(rows, sizes.keys);
    mixed = tape.scratch(rows, sizes.keys);
    kernels::dropout_factors(factor, options.dropout, *options.key, sizes.heads * sizes.queries);
    kernels::dropout_forward(mixed, weights, factor);
  }
  kernels::attention_mix_forward(y.value(), mixed, v.value(), sizes);
  tape.on_backward(y, [=] {
    Gradients d;
    if (!replaced) d = grad_sums(v, q, k);
    // Nothing flows to q and k; where they share v's source, their blocks must be zero.
    else if (v.needs_grad())
      d.v = v.grad();
    kernels::attention_backward(d.q, d.k, d.v, y.grad(), q.value(), k.value(), v.value(), weights, mixed,
                                factor, scratch.data, sizes, scale);
  });
  return y;
}

}  // namespace thimble::inline THIMBLE_PRECISION
