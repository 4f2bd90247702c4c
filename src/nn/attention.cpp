#include "thimble/nn/attention.h"

#include <algorithm>
#include <cmath>

#include "thimble/core/error.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

AttentionSettings completed(AttentionSettings s) {
  require<ShapeError>(s.heads > 0 && ((s.depth > 0 && s.width > 0) || s.channels % s.heads == 0),
                      "attention: {} heads do not divide {} channels; give the depth and width of heads",
                      s.heads, s.channels);
  if (s.kv_heads == 0) s.kv_heads = s.heads;
  if (s.depth == 0) s.depth = s.channels / s.heads;
  if (s.width == 0) s.width = s.channels / s.heads;
  require<ShapeError>(s.heads % s.kv_heads == 0,
                      "attention: {} heads of keys and values do not divide {} heads", s.kv_heads, s.heads);
  require<ShapeError>(!s.tied || s.kv_heads == s.heads,
                      "attention: tied queries and keys need as many heads of keys as of queries, {}, not {}",
                      s.heads, s.kv_heads);
  require<ShapeError>(!s.rotary || s.depth % 2 == 0,
                      "attention: rotary positions need an even number of columns of a head's keys, not {}",
                      s.depth);
  return s;
}

// A geometric sequence that ends at 2^-8.
std::vector<Real> alibi_slopes(std::int64_t heads) {
  std::vector<Real> slopes;
  for (std::int64_t h = 1; h <= heads; ++h)
    slopes.push_back(
        static_cast<Real>(std::exp2(-8.0 * static_cast<double>(h) / static_cast<double>(heads))));
  return slopes;
}

std::optional<Parameter> add_score_weight(ParameterStore& store, const std::string& name,
                                          const AttentionSettings& s) {
  const std::optional<Shape> shape = score_parameter(s.score, s.heads, s.depth);
  if (!shape) return std::nullopt;
  return store.add(name + ".score_weight", *shape);
}

std::vector<Parameter> add_output_weights(ParameterStore& store, const std::string& name,
                                          const AttentionSettings& s) {
  if (!s.summed) return {store.add(name + ".out_proj.weight", {s.channels, s.heads * s.width})};
  std::vector<Parameter> weights;
  for (std::int64_t h = 0; h < s.heads; ++h)
    weights.push_back(store.add(fmt::format("{}.out_proj.{}.weight", name, h), {s.channels, s.width}));
  return weights;
}

ConstMatrixView matrix(const ParameterStore& store, Parameter p) {
  const Shape& shape = store.entry(p).shape;
  return {store.values(p).data(), shape.rows(), shape.last(), shape.last()};
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(ParameterStore& store, const std::string& name,
                                       const AttentionSettings& the_settings, std::int64_t the_layer)
    : settings(completed(the_settings)),
      in_proj_weight(store.add(name + ".in_proj_weight", {first_value() + values(), settings.channels})),
      in_proj_bias(store.add(name + ".in_proj_bias", {store.entry(in_proj_weight).shape[0]})),
      score_weight(add_score_weight(store, name, settings)),
      out_proj_weights(add_output_weights(store, name, settings)),
      out_proj_bias(store.add(name + ".out_proj.bias", {settings.channels})),
      layer(static_cast<std::int32_t>(the_layer)),
      slopes_(settings.alibi ? alibi_slopes(settings.heads) : std::vector<Real>()) {}

void MultiHeadAttention::init(ParameterStore& store, std::uint64_t seed) const {
  const Shape& shape = store.entry(in_proj_weight).shape;
  init_uniform(store, in_proj_weight, seed, std::sqrt(6 / static_cast<double>(shape[0] + shape[1])));
  init_constant(store, in_proj_bias, 0);
  if (score_weight)
    init_uniform(store, *score_weight, seed, 1 / std::sqrt(static_cast<double>(settings.depth)));
  const double bound = 1 / std::sqrt(static_cast<double>(settings.heads * settings.width));
  for (const Parameter weight : out_proj_weights) init_uniform(store, weight, seed, bound);
  init_constant(store, out_proj_bias, 0);
}

MultiHeadAttention::Projected MultiHeadAttention::project(Var x, std::int64_t first_position) const {
  Tape& tape = x.tape();
  Var qkv = linear(x, tape.parameter(in_proj_weight), tape.parameter(in_proj_bias));
  if (settings.rotary) qkv = rotary(qkv, 0, first_value(), settings.depth, first_position);
  return {.q = {qkv, 0, queries()}, .k = {qkv, first_key(), keys()}, .v = {qkv, first_value(), values()}};
}

Var MultiHeadAttention::keys_values(Var memory) const {
  Tape& tape = memory.tape();
  return linear_part(memory, tape.parameter(in_proj_weight), tape.parameter(in_proj_bias), first_key(),
                     keys() + values());
}

MultiHeadAttention::Projected MultiHeadAttention::project(Var x, Var kv) const {
  require<ShapeError>(
      !settings.causal && !settings.rotary && !settings.alibi,
      "cross-attention: positions of two sequences have no order; leave out causal, rotary and "
      "alibi");
  Tape& tape = x.tape();
  const Var q = linear_part(x, tape.parameter(in_proj_weight), tape.parameter(in_proj_bias), 0, queries());
  return {.q = q, .k = {kv, 0, keys()}, .v = {kv, keys(), values()}};
}

Var MultiHeadAttention::attend(const Projected& p, std::span<const std::int32_t> lengths,
                               std::int64_t first_query, const Pass& pass) const {
  const AttentionSettings& s = settings;
  AttentionOptions options;
  options.heads = s.heads;
  options.kv_heads = s.kv_heads;
  options.mask = {.causal = s.causal, .lengths = lengths, .first_query = first_query, .slopes = slopes_};
  options.hooks = pass.hooks;
  options.site = {SiteKind::attention_weights, layer};
  if (pass.training && s.dropout.p > 0) {
    options.dropout = s.dropout.p;
    options.key = pass.dropout_key(s.dropout.site);
  }
  std::optional<Var> parameter;
  if (score_weight) parameter = p.q.source.tape().parameter(*score_weight);
  const Var heads = scored_attention(s.score, p.q, p.k, p.v, parameter, options);
  return project_output(hook_point(pass.hooks, {SiteKind::head_output, layer}, heads));
}

Var MultiHeadAttention::operator()(Var x, std::span<const std::int32_t> lengths, const Pass& pass) const {
  return attend(project(x), lengths, 0, pass);
}

Var MultiHeadAttention::operator()(Var x, Var memory, std::span<const std::int32_t> memory_lengths,
                                   const Pass& pass) const {
  return attend(project(x, keys_values(memory)), memory_lengths, 0, pass);
}

Var MultiHeadAttention::extend(Var x, Tensor& cache, std::int64_t at, const Pass& pass) const {
  const Projected now = project(x, at);
  const std::int64_t hypotheses = x.shape()[0], longest = cache.shape()[1], width = cache_width();
  Tensor seen({hypotheses, at + 1, width});
  for (std::int64_t n = 0; n < hypotheses; ++n) {
    const MatrixView kept = cache.matrix().row_block(n * longest, at + 1);
    std::copy_n(now.k.value().row(n), keys(), kept.row(at));
    std::copy_n(now.v.value().row(n), values(), kept.row(at) + keys());
    std::copy_n(kept.data, kept.elements(), seen.matrix().row(n * (at + 1)));
  }
  const Var kv = x.tape().constant(seen);
  return attend({now.q, {kv, 0, keys()}, {kv, keys(), values()}}, {}, at, pass);
}

Var MultiHeadAttention::project_output(Var heads) const {
  Tape& tape = heads.tape();
  const Var bias = tape.parameter(out_proj_bias);
  if (!settings.summed) return linear(heads, tape.parameter(out_proj_weights[0]), bias);
  const auto projected = [&](std::int64_t h, std::optional<Var> b = std::nullopt) {
    const Parameter weight = out_proj_weights[static_cast<std::size_t>(h)];
    return linear(Columns(heads, h * settings.width, settings.width), tape.parameter(weight), b);
  };
  Var sum = projected(0, bias);
  for (std::int64_t h = 1; h < settings.heads; ++h) sum = add(sum, projected(h));
  return sum;
}

MultiHeadAttention::HeadViews MultiHeadAttention::head(const ParameterStore& store, std::int64_t h) const {
  const AttentionSettings& s = settings;
  const ConstMatrixView in = matrix(store, in_proj_weight);
  const std::int64_t shared = h / (s.heads / s.kv_heads);
  const ConstMatrixView out = matrix(store, out_proj_weights[static_cast<std::size_t>(s.summed ? h : 0)]);
  return {.query = in.row_block(h * s.depth, s.depth),
          .key = in.row_block(first_key() + shared * s.depth, s.depth),
          .value = in.row_block(first_value() + shared * s.width, s.width),
          .output = s.summed ? out : out.column_block(h * s.width, s.width),
          .score = kind_of(s.score).matrices() ? matrix(store, *score_weight).row_block(h * s.depth, s.depth)
                                               : ConstMatrixView{}};
}

}  // namespace thimble::inline THIMBLE_PRECISION
