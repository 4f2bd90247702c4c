#include "thimble/nn/attention.h"

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
  return s;
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
                                       const AttentionSettings& the_settings)
    : settings(completed(the_settings)),
      in_proj_weight(store.add(name + ".in_proj_weight",
                               {first_value() + settings.kv_heads * settings.width, settings.channels})),
      in_proj_bias(store.add(name + ".in_proj_bias", {store.entry(in_proj_weight).shape[0]})),
      out_proj_weights(add_output_weights(store, name, settings)),
      out_proj_bias(store.add(name + ".out_proj.bias", {settings.channels})),
      weights_site(name + ".weights"),
      output_site(name + ".head_output") {}

void MultiHeadAttention::init(ParameterStore& store, std::uint64_t seed) const {
  const Shape& shape = store.entry(in_proj_weight).shape;
  init_uniform(store, in_proj_weight, seed, std::sqrt(6 / static_cast<double>(shape[0] + shape[1])));
  init_constant(store, in_proj_bias, 0);
  const double bound = 1 / std::sqrt(static_cast<double>(settings.heads * settings.width));
  for (const Parameter weight : out_proj_weights) init_uniform(store, weight, seed, bound);
  init_constant(store, out_proj_bias, 0);
}

double MultiHeadAttention::scale() const {
  return settings.score == Score::scaled_dot ? 1 / std::sqrt(static_cast<double>(settings.depth)) : 1;
}

Var MultiHeadAttention::operator()(Var x, std::span<const std::int32_t> lengths, const Pass& pass) const {
  Tape& tape = x.tape();
  const AttentionSettings& s = settings;
  AttentionOptions options;
  options.heads = s.heads;
  options.kv_heads = s.kv_heads;
  options.mask = {.causal = s.causal, .lengths = lengths};
  options.hooks = pass.hooks;
  options.site = &weights_site;
  if (s.score == Score::dot) options.scale = Real(1);
  if (pass.training && s.dropout.p > 0) {
    options.dropout = s.dropout.p;
    options.key = pass.dropout_key(s.dropout.site);
  }
  const Var qkv = linear(x, tape.parameter(in_proj_weight), tape.parameter(in_proj_bias));
  const Columns q(qkv, 0, s.heads * s.depth), k(qkv, first_key(), keys());
  const Columns v(qkv, first_value(), s.kv_heads * s.width);
  return project_output(site(pass.hooks, output_site, attention(q, k, v, options)));
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
          .output = s.summed ? out : out.column_block(h * s.width, s.width)};
}

}  // namespace thimble::inline THIMBLE_PRECISION
