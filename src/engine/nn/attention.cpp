#include "thimble/engine/attention.h"

#include <algorithm>
#include <cmath>

#include "engine/core/portable_math.h"
#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

AttentionSizes checked_sizes(const AttentionConfig& config, std::int64_t d_model, std::int64_t heads,
                             Positions positions) {
  require<ShapeError>(heads > 0 && ((config.d_key > 0 && config.d_value > 0) || d_model % heads == 0),
                      "attention: heads ({}) must divide d_model ({}), unless d_key and d_value are given",
                      heads, d_model);
  const AttentionSizes sizes = resolve(config, d_model, heads);
  require<ShapeError>(heads % sizes.kv_heads == 0, "attention: kv_heads ({}) must divide heads ({})",
                      sizes.kv_heads, heads);
  require<ShapeError>(!config.tie_query_key || sizes.kv_heads == heads,
                      "attention: with tie_query_key, kv_heads ({}) must equal heads ({})", sizes.kv_heads,
                      heads);
  require<ShapeError>(
      config.in_proj || (!config.tie_query_key && positions != Positions::rotary && sizes.kv_heads == heads &&
                         sizes.d_key * heads == d_model && sizes.d_value * heads == d_model),
      "attention: tie_query_key, kv_heads, d_key, d_value and rotary positions require in_proj");
  require<ShapeError>(positions != Positions::rotary || sizes.d_key % 2 == 0,
                      "attention: rotary positions require an even d_key, not {}", sizes.d_key);
  return sizes;
}

// Returns a geometric sequence that ends at 2^-8, for every number of heads.
std::vector<Real> alibi_slopes(std::int64_t heads) {
  std::vector<Real> slopes;
  for (std::int64_t h = 1; h <= heads; ++h)
    slopes.push_back(
        static_cast<Real>(portable::pow(2, -8.0 * static_cast<double>(h) / static_cast<double>(heads))));
  return slopes;
}

// Returns the identity matrix (size, size).
std::vector<Real> identity(std::int64_t size) {
  std::vector<Real> matrix(static_cast<std::size_t>(size * size));
  for (std::size_t i = 0; i < matrix.size(); i += static_cast<std::size_t>(size) + 1) matrix[i] = 1;
  return matrix;
}

std::optional<Parameter> add_score_weight(ParameterStore& store, const std::string& name, Score score,
                                          const AttentionSizes& sizes) {
  const std::optional<Shape> shape = score_parameter(score, sizes.heads, sizes.d_key);
  if (!shape) return std::nullopt;
  return store.add(name + ".score_weight", *shape);
}

std::vector<Parameter> add_output_weights(ParameterStore& store, const std::string& name,
                                          std::int64_t d_model, Combine combine,
                                          const AttentionSizes& sizes) {
  if (combine == Combine::concat)
    return {store.add(name + ".out_proj.weight", {d_model, sizes.heads * sizes.d_value})};
  std::vector<Parameter> weights;
  for (std::int64_t h = 0; h < sizes.heads; ++h)
    weights.push_back(store.add(fmt::format("{}.out_proj.{}.weight", name, h), {d_model, sizes.d_value}));
  return weights;
}

ConstMatrixView matrix(const ParameterStore& store, Parameter p) {
  const Shape& shape = store.entry(p).shape;
  return {store.values(p).data(), shape.rows(), shape.last(), shape.last()};
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(ParameterStore& store, const std::string& name, std::int64_t d_model,
                                       std::int64_t heads, const AttentionConfig& the_config,
                                       Positions the_positions, std::uint32_t the_dropout_site,
                                       std::int64_t the_layer, bool has_bias)
    : config(the_config),
      sizes(checked_sizes(config, d_model, heads, the_positions)),
      positions(the_positions),
      dropout_site(the_dropout_site),
      in_proj_weight(config.in_proj ? store.add(name + ".in_proj_weight", {first_value() + values(), d_model})
                                    : Parameter()),
      in_proj_bias(config.in_proj && has_bias
                       ? std::optional(store.add(name + ".in_proj_bias", {first_value() + values()}))
                       : std::nullopt),
      score_weight(add_score_weight(store, name, config.score, sizes)),
      out_proj_weights(add_output_weights(store, name, d_model, config.combine, sizes)),
      out_proj_bias(has_bias ? std::optional(store.add(name + ".out_proj.bias", {d_model})) : std::nullopt),
      layer(static_cast<std::int32_t>(the_layer)),
      slopes_(positions == Positions::alibi ? alibi_slopes(heads) : std::vector<Real>()),
      identity_(config.in_proj ? std::vector<Real>() : identity(d_model)) {}

void MultiHeadAttention::init(ParameterStore& store, std::uint64_t seed) const {
  if (config.in_proj) {
    const Shape& shape = store.entry(in_proj_weight).shape;
    if (config.in_proj_std > 0)
      init_normal(store, in_proj_weight, seed, config.in_proj_std);
    else
      init_uniform(store, in_proj_weight, seed, std::sqrt(6 / static_cast<double>(shape[0] + shape[1])));
    if (in_proj_bias) init_constant(store, *in_proj_bias, 0);
  }
  if (score_weight) init_uniform(store, *score_weight, seed, 1 / std::sqrt(static_cast<double>(sizes.d_key)));
  const double bound = 1 / std::sqrt(static_cast<double>(sizes.heads * sizes.d_value));
  for (const Parameter weight : out_proj_weights) init_uniform(store, weight, seed, bound);
  if (out_proj_bias) init_constant(store, *out_proj_bias, 0);
}

MultiHeadAttention::Projected MultiHeadAttention::project(Var x, std::int64_t first_position,
                                                          Hooks* hooks) const {
  Tape& tape = x.tape();
  Var qkv = config.in_proj ? linear(x, tape.parameter(in_proj_weight), parameter_if(tape, in_proj_bias)) : x;
  qkv = hook_point(hooks, {SiteKind::projections, layer}, qkv);
  if (positions == Positions::rotary)
    qkv = hook_point(hooks, {SiteKind::rotated, layer},
                     rotary(qkv, 0, first_value(), sizes.d_key, first_position, config.rotary));
  return {.q = {qkv, 0, queries()}, .k = {qkv, first_key(), keys()}, .v = {qkv, first_value(), values()}};
}

Var MultiHeadAttention::keys_values(Var memory) const {
  if (!config.in_proj) return memory;
  Tape& tape = memory.tape();
  return linear_part(memory, tape.parameter(in_proj_weight), parameter_if(tape, in_proj_bias), first_key(),
                     keys() + values());
}

MultiHeadAttention::Projected MultiHeadAttention::project(Var x, Var kv, Hooks* hooks) const {
  require<ShapeError>(
      config.mask == Mask::none && positions != Positions::rotary && positions != Positions::alibi,
      "cross-attention: a causal mask, rotary positions and ALiBi relate positions of one sequence; leave them out");
  Tape& tape = x.tape();
  Var q = config.in_proj
              ? linear_part(x, tape.parameter(in_proj_weight), parameter_if(tape, in_proj_bias), 0, queries())
              : x;
  q = hook_point(hooks, {SiteKind::cross_queries, layer}, q);
  kv = hook_point(hooks, {SiteKind::cross_keys_values, layer}, kv);
  return {.q = q, .k = {kv, 0, keys()}, .v = {kv, first_value() - first_key(), values()}};
}

Var MultiHeadAttention::attend(const Projected& p, std::span<const std::int32_t> lengths,
                               std::int64_t first_query, const ForwardOptions& options) const {
  AttentionOptions attention;
  attention.heads = sizes.heads;
  attention.kv_heads = sizes.kv_heads;
  attention.mask = {.causal = config.mask == Mask::causal,
                    .lengths = lengths,
                    .first_query = first_query,
                    .slopes = slopes_};
  attention.hooks = options.hooks;
  attention.site = {SiteKind::attention_weights, layer};
  if (options.training && config.dropout > 0) {
    attention.dropout = static_cast<Real>(config.dropout);
    attention.key = options.dropout_key(dropout_site);
  }
  std::optional<Var> parameter;
  if (score_weight) parameter = p.q.source.tape().parameter(*score_weight);
  const Var heads = scored_attention(config.score, p.q, p.k, p.v, parameter, attention);
  return project_output(hook_point(options.hooks, {SiteKind::head_output, layer}, heads));
}

Var MultiHeadAttention::operator()(Var x, std::span<const std::int32_t> lengths,
                                   const ForwardOptions& options) const {
  return attend(project(x, 0, options.hooks), lengths, 0, options);
}

Var MultiHeadAttention::operator()(Var x, Var memory, std::span<const std::int32_t> memory_lengths,
                                   const ForwardOptions& options) const {
  return attend(project(x, keys_values(memory), options.hooks), memory_lengths, 0, options);
}

Var MultiHeadAttention::decode_step(Var x, Tensor& cache, std::int64_t at,
                                    const ForwardOptions& options) const {
  const Projected now = project(x, at);
  const std::int64_t hypotheses = x.shape()[0], positions_kept = cache.shape()[1], width = cache_width();
  // Of one hypothesis, what is kept is the context; those of several are put together.
  const MatrixView context =
      hypotheses == 1 ? cache.matrix() : x.tape().scratch(hypotheses * (at + 1), width);
  for (std::int64_t n = 0; n < hypotheses; ++n) {
    const MatrixView kept = cache.matrix().row_block(n * positions_kept, at + 1);
    std::copy_n(now.k.value().row(n), keys(), kept.row(at));
    std::copy_n(now.v.value().row(n), values(), kept.row(at) + keys());
    if (hypotheses > 1) std::copy_n(kept.data, kept.elements(), context.row(n * (at + 1)));
  }
  const Var kv = x.tape().buffer({hypotheses, at + 1, width}, context.data);
  return attend({now.q, {kv, 0, keys()}, {kv, keys(), values()}}, {}, at, options);
}

Var MultiHeadAttention::project_output(Var heads) const {
  Tape& tape = heads.tape();
  const std::optional<Var> bias = parameter_if(tape, out_proj_bias);
  if (config.combine == Combine::concat) return linear(heads, tape.parameter(out_proj_weights[0]), bias);
  const auto projected = [&](std::int64_t h, std::optional<Var> b = std::nullopt) {
    const Parameter weight = out_proj_weights[static_cast<std::size_t>(h)];
    return linear(Columns(heads, h * sizes.d_value, sizes.d_value), tape.parameter(weight), b);
  };
  Var sum = projected(0, bias);
  for (std::int64_t h = 1; h < sizes.heads; ++h) sum = add(sum, projected(h));
  return sum;
}

MultiHeadAttention::HeadViews MultiHeadAttention::head(const ParameterStore& store, std::int64_t h) const {
  const bool sum = config.combine == Combine::sum;
  const std::int64_t d_key = sizes.d_key, d_value = sizes.d_value, shared = h / sizes.heads_per_kv_head();
  const std::int64_t channels = store.entry(out_proj_weights[0]).shape[0];
  const ConstMatrixView in = config.in_proj ? matrix(store, in_proj_weight)
                                            : ConstMatrixView{identity_.data(), channels, channels, channels};
  const ConstMatrixView out = matrix(store, out_proj_weights[static_cast<std::size_t>(sum ? h : 0)]);
  return {.query = in.row_block(h * d_key, d_key),
          .key = in.row_block(first_key() + shared * d_key, d_key),
          .value = in.row_block(first_value() + shared * d_value, d_value),
          .output = sum ? out : out.column_block(h * d_value, d_value),
          .score = kind_of(config.score).matrices() ? matrix(store, *score_weight).row_block(h * d_key, d_key)
                                                    : ConstMatrixView{}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
