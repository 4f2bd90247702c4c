#include "thimble/engine/ops.h"

#include <cmath>

#include "engine/kernels/attention/attention_steps.h"
#include "engine/kernels/elementwise.h"
#include "engine/ops/check_lengths.h"
#include "engine/ops/gradcheck_inputs.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

bool overlap(const Columns& a, const Columns& b) {
  return a.source == b.source && a.first < b.first + b.count && b.first < a.first + a.count;
}

using kernels::AttentionGradients;

// Returns the gradients that the kernel adds to. The gradient of a source may be uninitialized only where every element of
// it is overwritten before it is added to. Where values and keys, with or without the queries, are columns of one source,
// that holds if their blocks do not overlap and fill it: each element then belongs to one block, whose first write
// overwrites it. Queries and keys that are the same columns are one block, and the queries write it first.
AttentionGradients grad_accumulators(const Columns& v, const Columns& q, const Columns& k) {
  const bool tied = overlap(q, k) && q.first == k.first && q.count == k.count, with_q = q.source == v.source;
  const bool apart = !overlap(k, v) && !overlap(q, v) && (tied || !overlap(q, k));
  const std::int64_t filled = v.count + k.count + (with_q && !tied ? q.count : 0);
  if (k.source != v.source || !apart || filled != v.source.shape().last() || !v.needs_grad())
    return {v.grad_accumulator(), q.grad_accumulator(), k.grad_accumulator()};
  const GradientView sum = v.source.grad_accumulator();
  const auto block = [&](const Columns& x) { return sum.column_block(x.first, x.count); };
  AttentionGradients gradients{block(v), with_q ? block(q) : q.grad_accumulator(), block(k)};
  if (tied) gradients.k.uninitialized = false;  // the queries came first
  return gradients;
}

void check_options(const char* name, const AttentionOptions& options, const AttentionSizes& sizes) {
  require<ShapeError>(options.dropout >= 0 && options.dropout < 1,
                      "{}: the dropout probability ({}) must be at least 0 and below 1", name,
                      options.dropout);
  require<ShapeError>(options.dropout == 0 || options.key.has_value(),
                      "{}: dropout of the weights requires a key", name);
  const auto& [causal, lengths, first_query, slopes] = options.mask;
  check_lengths(name, lengths, sizes.batch, 0, sizes.keys);
  require<ShapeError>(first_query >= 0 && (!causal || first_query + sizes.queries == sizes.keys),
                      "{}: {} queries, {} keys: a causal mask with query 0 at position {} requires {} keys",
                      name, sizes.queries, sizes.keys, first_query, first_query + sizes.queries);
  require<ShapeError>(slopes.empty() || options.softmax, "{}: ALiBi requires the softmax", name);
  require<ShapeError>(slopes.empty() || std::ssize(slopes) == sizes.heads, "{}: {} slopes for {} heads", name,
                      slopes.size(), sizes.heads);
}

Site scores_site(const AttentionOptions& options) {
  return {SiteKind::attention_scores, options.site.layer, options.site.position};
}

bool wants_scores(const AttentionOptions& options) {
  return options.hooks != nullptr && options.hooks->wants(scores_site(options));
}

bool may_replace(const AttentionOptions& options) {
  return options.hooks != nullptr && options.hooks->may_replace(options.site);
}

// Returns memory for the weights of a forward pass whose steps are apart. Where hooks may replace them, the dropout is 0
// for those that are, so that no gradient flows from them to the scores.
kernels::KeptWeights weights_of_steps(Tape& tape, const AttentionSizes& sizes,
                                      const AttentionOptions& options) {
  const auto scores = [&] { return tape.scratch(sizes.batch * sizes.heads * sizes.queries, sizes.keys); };
  kernels::KeptWeights kept{scores()};
  if (options.dropout > 0 || may_replace(options)) kept = {kept.full, scores(), scores()};
  return kept;
}

const MatrixView& applied(const kernels::KeptWeights& kept) {
  return kept.applied.data != nullptr ? kept.applied : kept.full;
}

// Passes the weights to hooks and applies dropout.
void finish(const kernels::KeptWeights& kept, const AttentionSizes& sizes, const AttentionOptions& options) {
  const auto& [full, factor, dropped] = kept;
  const bool may = may_replace(options), drops = options.dropout > 0;
  bool replaced = false;
  if (options.hooks != nullptr) {
    const Shape shape{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
    if (may) std::copy_n(full.data, full.elements(), dropped.data);
    replaced = may && options.hooks->replace(options.site, shape, dropped);
    options.hooks->observe(options.site, shape, may ? dropped : full);
  }
  if (drops) {
    kernels::dropout_factors(factor, options.dropout, *options.key, sizes.heads * sizes.queries);
    kernels::mul_forward(dropped, may ? dropped : full, factor);
  } else if (may) {
    std::fill_n(factor.data, factor.elements(), Real{1});
  }
  if (!replaced) return;
  const ConstMatrixView unreplaced = options.hooks->kept(options.site);
  if (unreplaced.data == nullptr)
    std::fill_n(factor.data, factor.elements(), Real{0});
  else
    kernels::mul_forward(factor, factor, unreplaced);
}

// Returns the FLOPs of the products with keys (none with d_key 0) and values, twice as many backward, and of the weights
// where they are computed again.
Flops attention_flops(const kernels::AttentionPass& pass) {
  const auto scores = static_cast<double>(kernels::attention_score_count(pass));
  const double keys = 2 * scores * static_cast<double>(pass.sizes.d_key),
               values = 2 * scores * static_cast<double>(pass.sizes.d_value);
  return {.forward = keys + values, .backward = (pass.keeps ? 2 : 3) * keys + 2 * values};
}

// Weights of up to this many keys are kept for the backward pass. With 2 layers of 8 heads on an AMD EPYC (Zen 4),
// a step takes the same time either way at 272 keys, and 1.24 times as long at 512 if they are kept; with a causal
// mask, 1.2 and 1.9 times.
constexpr std::int64_t kMaxKeptKeys = 256;

void check_shapes(const Columns& q, const Columns& k, const Columns& v, const AttentionOptions& options) {
  const Shape &sq = q.source.shape(), &sk = k.source.shape(), &sv = v.source.shape();
  require<ShapeError>(sq.rank() == 3 && sk.rank() == 3 && sv.rank() == 3 && sq[0] == sk[0] && sk[0] == sv[0],
                      "attention: q {}, k {}, v {}: all must be (batch, time, channels) of one batch", sq, sk,
                      sv);
  require<ShapeError>(sk[1] == sv[1], "attention: q {}, k {}, v {}: k and v must have the same time", sq, sk,
                      sv);
  const std::int64_t heads = options.heads, kv_heads = options.kv_heads;
  require<ShapeError>(
      heads > 0 && kv_heads > 0 && heads % kv_heads == 0 && q.count % heads == 0 && v.count % kv_heads == 0,
      "attention: q {}, k {}, v {}: heads ({}) must divide the channels of q ({}), kv_heads ({}) must divide heads and the channels of v ({})",
      sq, sk, sv, heads, q.count, kv_heads, v.count);
  require<ShapeError>(
      k.count == q.count / heads * kv_heads,
      "attention: q {}, k {}, v {}: with {} channels of q, heads {} and kv_heads {}, k must have {} channels, not {}",
      sq, sk, sv, q.count, heads, kv_heads, q.count / heads * kv_heads, k.count);
}

}  // namespace

Var attention(Columns q, Columns k, Columns v, const AttentionOptions& options) {
  check_shapes(q, k, v, options);
  const Shape &queries = q.source.shape(), &keys = k.source.shape();
  const AttentionSizes sizes{.heads = options.heads,
                             .kv_heads = options.kv_heads,
                             .d_key = q.count / options.heads,
                             .d_value = v.count / options.kv_heads,
                             .softmax = options.softmax,
                             .batch = queries[0],
                             .queries = queries[1],
                             .keys = keys[1]};
  check_options("attention", options, sizes);
  const Real scale = options.scale.value_or(1 / std::sqrt(static_cast<Real>(sizes.d_key)));
  if (options.softmax && wants_scores(options))
    return attend(score_product(q, k, options.heads, options.kv_heads, scale), v, options);
  const bool steps = options.hooks != nullptr,
             needs_grad = q.needs_grad() || k.needs_grad() || v.needs_grad();
  kernels::AttentionPass pass{
      .sizes = sizes, .mask = options.mask, .scale = scale, .dropout = options.dropout};
  if (options.dropout > 0) pass.key = options.key;
  pass.keeps = steps || (needs_grad && options.keep_weights.value_or(sizes.keys <= kMaxKeptKeys));
  // A mask that is not causal leaves little out, and gradients of one tensor are added up in the order of the blocks.
  const bool in_blocks = options.mask.causal && !overlap(q, k) && !overlap(q, v) && !overlap(k, v);
  if (pass.keeps && !in_blocks) pass.block = sizes.queries;
  Tape& tape = q.source.tape();
  if (steps) {
    pass.kept = weights_of_steps(tape, sizes, options);
    pass.block = 0;
  } else if (pass.keeps) {
    const auto scores = [&] { return tape.scratch(sizes.batch * sizes.heads * sizes.queries, sizes.keys); };
    pass.kept.full = scores();
    if (pass.key) pass.kept.dropout = scores();
  }
  const MatrixView scratch = tape.scratch(1, kernels::attention_scratch(pass, needs_grad));
  return record(
      "attention", {sizes.batch, sizes.queries, sizes.heads * sizes.d_value}, {q.source, k.source, v.source},
      [=, &options](Var y) {
        if (!steps)
          return kernels::attention_forward(y.value(), {q.value(), k.value(), v.value()}, scratch.data, pass);
        kernels::attention_weights_forward(pass.kept.full, q.value(), k.value(), scratch.data, sizes,
                                           options.mask, scale);
        finish(pass.kept, sizes, options);
        kernels::attention_apply_forward(y.value(), applied(pass.kept), v.value(), sizes);
      },
      [=](Var y) {
        kernels::attention_backward(grad_accumulators(v, q, k), y.grad(), {q.value(), k.value(), v.value()},
                                    scratch.data, pass);
      },
      attention_flops(pass));
}

Var attend(Var scores, Columns v, const AttentionOptions& options) {
  const Shape shape = scores.shape(), values = v.shape();
  require<ShapeError>(
      shape.rank() == 4 && values.rank() == 3 && shape[0] == values[0] && shape[3] == values[1],
      "attend: scores {}, v {}: they must be (batch, heads, queries, keys) and (batch, keys, channels)",
      shape, values);
  require<ShapeError>(
      options.heads == shape[1] && shape[1] > 0 && options.kv_heads > 0 && shape[1] % options.kv_heads == 0 &&
          v.count % options.kv_heads == 0,
      "attend: scores {}, v {}: the scores must have {} heads; kv_heads ({}) must divide heads and the channels of v",
      shape, values, options.heads, options.kv_heads);
  const AttentionSizes sizes{.heads = options.heads,
                             .kv_heads = options.kv_heads,
                             .d_key = 0,
                             .d_value = v.count / options.kv_heads,
                             .batch = shape[0],
                             .queries = shape[2],
                             .keys = shape[3]};
  check_options("attend", options, sizes);
  require<ShapeError>(options.softmax, "attend: the weights require the softmax");
  kernels::AttentionMask mask = options.mask;
  if (wants_scores(options)) {
    scores = hook_point(options.hooks, scores_site(options), mask_scores(scores, mask));
    mask.slopes = {};
  }
  Tape& tape = scores.tape();
  const kernels::AttentionPass pass{
      .sizes = sizes, .kept = weights_of_steps(tape, sizes, options), .block = 0};
  const bool needs_grad = scores.needs_grad() || v.needs_grad();
  const MatrixView scratch = tape.scratch(1, needs_grad ? kernels::attention_scratch(pass, true) : 0);
  return record(
      "attend", {sizes.batch, sizes.queries, sizes.heads * sizes.d_value}, {scores, v.source},
      [=, &options](Var y) {
        kernels::attention_softmax_forward(pass.kept.full, scores.value(), sizes, mask);
        finish(pass.kept, sizes, options);
        kernels::attention_apply_forward(y.value(), applied(pass.kept), v.value(), sizes);
      },
      [=](Var y) {
        kernels::attention_backward({v.grad_accumulator(), {}, {}, scores.grad_accumulator()}, y.grad(),
                                    {{}, {}, v.value()}, scratch.data, pass);
      },
      attention_flops(pass));
}

namespace {

// Returns a case with queries, keys and values side by side, 2 columns per head of queries and keys and 3 per
// head of values. With `tied`, the queries are the keys.
GradcheckCase packed_attention(const std::string& variant, std::int64_t time, AttentionOptions options,
                               bool tied = false) {
  const std::int64_t kv = options.kv_heads;
  const std::int64_t key = tied ? 0 : 2 * options.heads, value = key + 2 * kv;
  return {"attention", variant, {normal("qkv", {2, time, value + 3 * kv})}, [=](Tape&, Inputs in) {
            return attention({in[0], 0, 2 * options.heads}, {in[0], key, 2 * kv}, {in[0], value, 3 * kv},
                             options);
          }};
}

std::vector<GradcheckInput> attention_inputs(std::int64_t queries, std::int64_t keys, std::int64_t heads) {
  return {normal("q", {2, queries, heads * 3}), normal("k", {2, keys, heads * 3}),
          normal("v", {2, keys, heads * 4})};
}

AttentionOptions options_of(std::int64_t heads, std::int64_t kv_heads,
                            const kernels::AttentionMask& mask = {}) {
  return {.heads = heads, .kv_heads = kv_heads, .mask = mask, .scale = {}, .key = {}, .keep_weights = {}};
}

}  // namespace

std::vector<GradcheckCase> gradcheck_attention() {
  static const std::vector<std::int32_t> lengths{5, 3}, with_empty{0, 4};
  static const std::vector<Real> slopes{Real(0.5), Real(0.1), Real(1), Real(0.3)};
  const auto separate = [](AttentionOptions options) {
    return [options](Tape&, Inputs in) { return attention(in[0], in[1], in[2], options); };
  };
  const auto applied = [](AttentionOptions options) {
    return [options](Tape&, Inputs in) { return attend(in[0], in[1], options); };
  };
  const auto scores = [](std::int64_t queries, std::int64_t keys, std::int64_t heads, std::int64_t kv_heads) {
    return std::vector{normal("scores", {2, heads, queries, keys}), normal("v", {2, keys, kv_heads * 3})};
  };
  const AttentionOptions two = options_of(2, 2), grouped = options_of(4, 2);
  AttentionOptions dropped = options_of(2, 2, {.causal = true, .lengths = lengths}), scaled = two;
  dropped.dropout = Real(0.3);
  dropped.key = kernels::DropoutKey{Random(5, Stream::dropout), 1, 0, 1};
  scaled.scale = Real(0.3);
  AttentionOptions linear = options_of(4, 2, {.causal = true, .lengths = lengths});
  linear.softmax = false;
  const std::vector<GradcheckInput> five = attention_inputs(5, 5, 2);
  // Without weights, in two blocks of queries.
  static const std::vector<std::int32_t> long_lengths{35, 33}, long_with_empty{0, 34};
  AttentionOptions blocks = options_of(4, 2, {.causal = true, .lengths = long_lengths, .slopes = slopes});
  blocks.dropout = dropped.dropout;
  blocks.key = dropped.key;
  blocks.keep_weights = false;
  AttentionOptions tied_blocks = options_of(2, 2, {.lengths = long_with_empty}), linear_blocks = linear;
  tied_blocks.keep_weights = linear_blocks.keep_weights = false;
  return {
      {"attention", "", five, separate(two)},
      {"attention", "3 queries, 7 keys", attention_inputs(3, 7, 2), separate(two)},
      {"attention", "20 keys", attention_inputs(9, 20, 1), separate(options_of(1, 1))},
      {"attention", "causal", five, separate(options_of(2, 2, {.causal = true, .lengths = {}}))},
      {"attention", "padding", five, separate(options_of(2, 2, {.causal = false, .lengths = lengths}))},
      {"attention", "causal, padding", five,
       separate(options_of(2, 2, {.causal = true, .lengths = lengths}))},
      {"attention", "a sequence without keys", five,
       separate(options_of(2, 2, {.causal = true, .lengths = with_empty}))},
      {"attention", "dropout", five, separate(dropped)},
      packed_attention("linear, causal, padding, 4 heads on 2", 5, linear),
      {"attention", "scale 0.3", five, separate(scaled)},
      {"attention",
       "one key",
       {zero_gradient(normal("q", {2, 3, 4})), zero_gradient(normal("k", {2, 1, 4})), normal("v", {2, 1, 6})},
       separate(two)},
      packed_attention("packed", 5, two),
      packed_attention("packed, dropout, causal, padding", 5, dropped),
      packed_attention("packed, one token", 1, two),
      packed_attention("tied", 5, dropped, true),
      packed_attention("4 heads on 1", 5, options_of(4, 1)),
      packed_attention("4 heads on 2", 5, grouped),
      packed_attention("ALiBi", 5, options_of(4, 2, {.lengths = {}, .slopes = slopes})),
      packed_attention("weights not kept, causal, padding, ALiBi, dropout", 35, blocks),
      packed_attention("weights not kept, tied, a sequence without keys", 35, tied_blocks, true),
      packed_attention("weights not kept, linear, 4 heads on 2", 5, linear_blocks),
      // One tensor, so one gradient, for all three; and columns that are not read.
      {"attention",
       "of itself",
       {normal("x", {2, 5, 6})},
       [two](Tape&, Inputs in) { return attention(in[0], in[0], in[0], two); }},
      {"attention",
       "some columns",
       {normal("x", {2, 5, 9})},
       [two](Tape&, Inputs in) {
         return attention({in[0], 1, 4}, {in[0], 3, 4}, {in[0], 7, 2}, two);
       }},
      {"attention",
       "causal, queries from position 3",
       {normal("q", {2, 2, 8}), normal("k", {2, 5, 4}), normal("v", {2, 5, 6})},
       separate(options_of(4, 2, {.causal = true, .lengths = {}, .first_query = 3}))},
      {"attend", "", scores(3, 7, 2, 2), applied(two)},
      {"attend", "20 keys", scores(2, 20, 2, 2), applied(two)},
      {"attend", "dropout, causal, padding", scores(5, 5, 2, 2), applied(dropped)},
      {"attend", "4 heads on 2", scores(3, 5, 4, 2), applied(grouped)},
      {"attend",
       "one key",
       {zero_gradient(normal("scores", {2, 2, 3, 1})), normal("v", {2, 1, 6})},
       applied(two)},
      {"attend",
       "scores that are used twice, values in a projection",
       {normal("scores", {2, 2, 3, 5}), normal("kv", {2, 5, 9})},
       [two](Tape&, Inputs in) {
         return add(attend(in[0], {in[1], 3, 6}, two), attend(in[0], {in[1], 0, 6}, two));
       }}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
