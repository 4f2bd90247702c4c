#include "thimble/ops/ops.h"

#include <cmath>

#include "thimble/core/error.h"
#include "thimble/kernels/elementwise.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

bool same_source(const Columns& a, const Columns& b) {
  return a.source.value().data == b.source.value().data;
}

bool overlap(const Columns& a, const Columns& b) {
  return same_source(a, b) && a.first < b.first + b.count && b.first < a.first + a.count;
}

struct Gradients {
  GradientView v, q, k;  // in the order in which each head adds to them
};

// Keys and values, and the queries or not, may share a source. If they fill it, its gradient is theirs
// together, and may be uninitialized.
Gradients grad_accumulators(const Columns& v, const Columns& q, const Columns& k) {
  const bool tied = overlap(q, k) && q.first == k.first && q.count == k.count, with_q = same_source(q, v);
  const bool apart = !overlap(k, v) && !overlap(q, v) && (tied || !overlap(q, k));
  const std::int64_t filled = v.count + k.count + (with_q && !tied ? q.count : 0);
  if (!same_source(k, v) || !apart || filled != v.source.shape().last() || !v.needs_grad())
    return {v.grad_accumulator(), q.grad_accumulator(), k.grad_accumulator()};
  const GradientView sum = v.source.grad_accumulator();
  const auto block = [&](const Columns& x) { return sum.column_block(x.first, x.count); };
  Gradients gradients{block(v), with_q ? block(q) : q.grad_accumulator(), block(k)};
  if (tied) gradients.k.uninitialized = false;  // the queries came first
  return gradients;
}

void check_options(const char* name, const AttentionOptions& options, const AttentionSizes& sizes) {
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

// The attention weights of a forward pass.
struct AttentionWeights {
  MatrixView full, dropped, factor;  // dropped: after dropout, by these factors
  bool* replaced;                    // by a hook: then no gradient flows to what they were computed from

  AttentionWeights(Tape& tape, const AttentionSizes& sizes, bool dropout)
      : full(tape.scratch(sizes.batch * sizes.heads * sizes.queries, sizes.keys)),
        dropped(dropout ? tape.scratch(full.rows, full.cols) : full),
        factor(dropout ? tape.scratch(full.rows, full.cols) : MatrixView{}),
        replaced(tape.room<bool>(1).data()) {}

  // Shows the weights to hooks and applies dropout.
  void finish(const AttentionSizes& sizes, const AttentionOptions& options) const {
    *replaced = false;
    if (options.hooks != nullptr) {
      const Shape shape{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
      *replaced = options.hooks->replace(options.site, shape, full);
      options.hooks->observe(options.site, shape, full);
    }
    if (factor.data == nullptr) return;
    kernels::dropout_factors(factor, options.dropout, *options.key, sizes.heads * sizes.queries);
    kernels::multiply_forward(dropped, full, factor);
  }
};

// The products of scores and values or, with d_key 0, of values alone, and twice that backwards.
Flops attention_flops(const AttentionSizes& sizes) {
  const double scores = static_cast<double>(sizes.batch * sizes.heads * sizes.queries) * sizes.keys;
  const double forward = 2 * scores * static_cast<double>(sizes.d_key + sizes.d_value);
  return {.forward = forward, .backward = 2 * forward};
}

void check_shapes(const Columns& q, const Columns& k, const Columns& v, const AttentionOptions& options) {
  const Shape &sq = q.source.shape(), &sk = k.source.shape(), &sv = v.source.shape();
  require<ShapeError>(sq.rank() == 3 && sk.rank() == 3 && sv.rank() == 3 && sq[0] == sk[0] && sk[0] == sv[0],
                      "attention: q {}, k {}, v {}: all must be (batch, time, channels) of one batch", sq, sk,
                      sv);
  require<ShapeError>(sk[1] == sv[1], "attention: q {}, k {}, v {}: k and v need the same time", sq, sk, sv);
  const std::int64_t heads = options.heads, kv_heads = options.kv_heads;
  require<ShapeError>(
      heads > 0 && kv_heads > 0 && heads % kv_heads == 0 && q.count % heads == 0 && v.count % kv_heads == 0,
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
  const AttentionSizes sizes{.heads = options.heads,
                             .kv_heads = options.kv_heads,
                             .d_key = q.count / options.heads,
                             .d_value = v.count / options.kv_heads,
                             .batch = queries[0],
                             .queries = queries[1],
                             .keys = keys[1]};
  check_options("attention", options, sizes);
  const Real scale = options.scale.value_or(1 / std::sqrt(static_cast<Real>(sizes.d_key)));

  Tape& tape = q.source.tape();
  const bool needs_grad = q.needs_grad() || k.needs_grad() || v.needs_grad();
  const std::int64_t of_backward = needs_grad ? sizes.queries * sizes.keys : 0;
  const MatrixView scratch = tape.scratch(1, std::max(sizes.d_key, sizes.d_value) * sizes.keys + of_backward);
  const AttentionWeights weights(tape, sizes, options.dropout > 0);
  return record(
      "attention", {sizes.batch, sizes.queries, sizes.heads * sizes.d_value}, {q.source, k.source, v.source},
      [=, &options](Var y) {
        kernels::attention_weights_forward(weights.full, q.value(), k.value(), scratch.data, sizes,
                                           options.mask, scale);
        weights.finish(sizes, options);
        kernels::attention_mix_forward(y.value(), weights.dropped, v.value(), sizes);
      },
      [=](Var y) {
        // Where weights were replaced and q and k share v's source, their blocks of its gradient must be
        // zero.
        const Gradients d =
            *weights.replaced ? Gradients{v.zeroed_grad_accumulator(), {}, {}} : grad_accumulators(v, q, k);
        kernels::attention_backward(d.q, d.k, d.v, y.grad(), q.value(), k.value(), v.value(), weights.full,
                                    weights.dropped, weights.factor, scratch.data, sizes, scale);
      },
      attention_flops(sizes));
}

Var attend(Var scores, Columns v, const AttentionOptions& options) {
  const Shape shape = scores.shape(), values = v.shape();
  require<ShapeError>(
      shape.rank() == 4 && values.rank() == 3 && shape[0] == values[0] && shape[3] == values[1],
      "attend: scores {}, v {}: they must be (batch, heads, queries, keys) and (batch, keys, channels)",
      shape, values);
  require<ShapeError>(options.heads == shape[1] && shape[1] > 0 && options.kv_heads > 0 &&
                          shape[1] % options.kv_heads == 0 && v.count % options.kv_heads == 0,
                      "attend: scores {}, v {}: {} heads, {} of values, which must divide the heads and the "
                      "channels of v",
                      shape, values, options.heads, options.kv_heads);
  const AttentionSizes sizes{.heads = options.heads,
                             .kv_heads = options.kv_heads,
                             .d_key = 0,
                             .d_value = v.count / options.kv_heads,
                             .batch = shape[0],
                             .queries = shape[2],
                             .keys = shape[3]};
  check_options("attend", options, sizes);
  Tape& tape = scores.tape();
  const bool needs_grad = scores.needs_grad() || v.needs_grad();
  const MatrixView scratch = tape.scratch(1, needs_grad ? (sizes.d_value + sizes.queries) * sizes.keys : 0);
  const AttentionWeights weights(tape, sizes, options.dropout > 0);
  return record(
      "attend", {sizes.batch, sizes.queries, sizes.heads * sizes.d_value}, {scores, v.source},
      [=, &options](Var y) {
        kernels::attention_softmax_forward(weights.full, scores.value(), sizes, options.mask);
        weights.finish(sizes, options);
        kernels::attention_mix_forward(y.value(), weights.dropped, v.value(), sizes);
      },
      [=](Var y) {
        const GradientView dscores = *weights.replaced ? GradientView{} : scores.grad_accumulator();
        kernels::attention_softmax_backward(dscores, v.grad_accumulator(), y.grad(), v.value(), weights.full,
                                            weights.dropped, weights.factor, scratch.data, sizes);
      },
      attention_flops(sizes));
}

}  // namespace thimble::inline THIMBLE_PRECISION
