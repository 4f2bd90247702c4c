#include "thimble/ops/ops.h"

#include <cmath>

#include "thimble/core/error.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

// Columns of a Var that serve as query, key or value.
struct Operand {
  Var source;
  std::int64_t first, columns;

  MatrixView value() const { return source.value().column_block(first, columns); }
  GradientView block(GradientView sum) const {
    return sum.data != nullptr ? sum.column_block(first, columns) : sum;
  }
};

Var attend(const char* name, const Operand& q, const Operand& k, const Operand& v,
           const AttentionOptions& options) {
  const Shape &queries = q.source.shape(), &keys = k.source.shape();
  const kernels::AttentionSizes sizes{queries[0], queries[1], keys[1], options.heads};
  const std::int64_t depth = q.columns / sizes.heads, width = v.columns / sizes.heads;
  const Real scale = options.scale.value_or(1 / std::sqrt(static_cast<Real>(depth)));
  const std::int64_t rows = sizes.batch * sizes.heads * sizes.queries;

  require<ShapeError>(options.dropout >= 0 && options.dropout < 1,
                      "{}: the dropout probability is {}, it must be at least 0 and below 1", name,
                      options.dropout);
  require<ShapeError>(options.dropout == 0 || options.key.has_value(),
                      "{}: dropout of the weights needs a key", name);

  Tape& tape = q.source.tape();
  const Var y = tape.node(name, {sizes.batch, sizes.queries, v.columns}, {q.source, k.source, v.source});
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
    const auto wanted = [](Var source) { return source.needs_grad() ? source.grad_sum() : GradientView{}; };
    GradientView dq, dk, dv;
    if (replaced) {  // nothing flows to q and k; where they share v's source, their blocks must be zero
      if (v.source.needs_grad()) dv = v.source.grad();
    } else {
      const bool packed = q.columns < q.source.shape().last();  // one sum, empty for all three or for none
      dv = wanted(v.source);
      dk = packed ? dv : wanted(k.source);
      dq = packed ? dv : wanted(q.source);
    }
    kernels::attention_backward(q.block(dq), k.block(dk), v.block(dv), y.grad(), q.value(), k.value(),
                                v.value(), weights, mixed, factor, scratch.data, sizes, scale);
  });
  return y;
}

void check_lengths(const char* name, const AttentionOptions& options, std::int64_t batch, std::int64_t keys) {
  const auto& lengths = options.mask.lengths;
  require<ShapeError>(lengths.empty() || static_cast<std::int64_t>(lengths.size()) == batch,
                      "{}: {} lengths for a batch of {}", name, lengths.size(), batch);
  const bool inside = std::ranges::all_of(lengths, [=](auto n) { return n >= 0 && n <= keys; });
  require<ShapeError>(inside, "{}: every length must be 0 .. {}", name, keys);
}

}  // namespace

Var attention(Var q, Var k, Var v, const AttentionOptions& options) {
  const Shape &sq = q.shape(), &sk = k.shape(), &sv = v.shape();
  require<ShapeError>(sq.rank() == 3 && sk.rank() == 3 && sv.rank() == 3 && sq[0] == sk[0] && sk[0] == sv[0],
                      "attention: q {}, k {}, v {}: all must be (batch, time, channels) of one batch", sq, sk,
                      sv);
  require<ShapeError>(sq[2] == sk[2] && sk[1] == sv[1],
                      "attention: q {}, k {}, v {}: q and k need the same channels, k and v the same time",
                      sq, sk, sv);
  require<ShapeError>(options.heads > 0 && sq[2] % options.heads == 0 && sv[2] % options.heads == 0,
                      "attention: q {}, k {}, v {}: {} heads must divide the channels of all three", sq, sk,
                      sv, options.heads);
  require<ShapeError>(!options.mask.causal || sq[1] == sk[1],
                      "attention: q {}, k {}, v {}: a causal mask needs as many keys as queries", sq, sk, sv);
  check_lengths("attention", options, sq[0], sk[1]);
  return attend("attention", {q, 0, sq[2]}, {k, 0, sk[2]}, {v, 0, sv[2]}, options);
}

Var self_attention(Var qkv, const AttentionOptions& options) {
  const Shape& shape = qkv.shape();
  require<ShapeError>(
      shape.rank() == 3 && shape[2] % 3 == 0 && options.heads > 0 && shape[2] / 3 % options.heads == 0,
      "self_attention: qkv {} must be (batch, time, 3 channels), and {} heads divide the channels", shape,
      options.heads);
  check_lengths("self_attention", options, shape[0], shape[1]);
  const std::int64_t c = shape[2] / 3;
  return attend("self_attention", {qkv, 0, c}, {qkv, c, c}, {qkv, 2 * c, c}, options);
}

}  // namespace thimble::inline THIMBLE_PRECISION
