#include "thimble/nn/modules.h"

#include <cmath>

namespace thimble::inline THIMBLE_PRECISION {

Linear::Linear(ParameterStore& store, const std::string& name, std::int64_t in, std::int64_t out)
    : weight(store.add(name + ".weight", {out, in})), bias(store.add(name + ".bias", {out})) {}

void Linear::init(ParameterStore& store, std::uint64_t seed) const {
  const double bound = 1 / std::sqrt(static_cast<double>(store.entry(weight).shape[1]));
  init_uniform(store, weight, seed, bound);
  init_uniform(store, bias, seed, bound);
}

Var Linear::operator()(Var x) const {
  return linear(x, x.tape().parameter(weight), x.tape().parameter(bias));
}

LayerNorm::LayerNorm(ParameterStore& store, const std::string& name, std::int64_t channels)
    : weight(store.add(name + ".weight", {channels})), bias(store.add(name + ".bias", {channels})) {}

void LayerNorm::init(ParameterStore& store) const {
  init_constant(store, weight, 1);
  init_constant(store, bias, 0);
}

Var LayerNorm::operator()(Var x) const {
  return layer_norm(x, x.tape().parameter(weight), x.tape().parameter(bias));
}

RmsNorm::RmsNorm(ParameterStore& store, const std::string& name, std::int64_t channels)
    : weight(store.add(name + ".weight", {channels})) {}

void RmsNorm::init(ParameterStore& store) const { init_constant(store, weight, 1); }

Var RmsNorm::operator()(Var x) const { return rms_norm(x, x.tape().parameter(weight)); }

Embedding::Embedding(ParameterStore& store, const std::string& name, std::int64_t rows, std::int64_t channels)
    : weight(store.add(name + ".weight", {rows, channels})) {}

void Embedding::init(ParameterStore& store, std::uint64_t seed, double standard_deviation) const {
  init_normal(store, weight, seed, standard_deviation);
}

Var Embedding::operator()(Tape& tape, std::span<const std::int32_t> tokens, std::int64_t length) const {
  return embedding(tape.parameter(weight), tokens, length);
}

Convolution::Convolution(ParameterStore& store, const std::string& name, std::int64_t channels,
                         std::int64_t window_size, bool is_causal)
    : weight(store.add(name + ".weight", {channels, channels, window_size})),
      bias(store.add(name + ".bias", {channels})),
      window(window_size),
      causal(is_causal) {}

void Convolution::init(ParameterStore& store, std::uint64_t seed) const {
  const Shape& shape = store.entry(weight).shape;
  const double bound = 1 / std::sqrt(static_cast<double>(shape[1] * shape[2]));
  init_uniform(store, weight, seed, bound);
  init_uniform(store, bias, seed, bound);
}

Var Convolution::operator()(Var x, std::span<const std::int32_t> lengths) const {
  return linear(windows(x, window, causal, lengths), x.tape().parameter(weight), x.tape().parameter(bias));
}

Var Dropout::operator()(Var x, const Pass& pass) const {
  if (!pass.training || p == 0) return x;
  return dropout(x, p, pass.dropout_key(site));
}

MultiHeadAttention::MultiHeadAttention(ParameterStore& store, const std::string& name, std::int64_t channels,
                                       std::int64_t head_count, bool is_causal, Dropout weights_dropout)
    : in_proj_weight(store.add(name + ".in_proj_weight", {3 * channels, channels})),
      in_proj_bias(store.add(name + ".in_proj_bias", {3 * channels})),
      out_proj(store, name + ".out_proj", channels, channels),
      heads(head_count),
      causal(is_causal),
      dropout(weights_dropout),
      weights_site(name + ".weights"),
      output_site(name + ".head_output") {}

void MultiHeadAttention::init(ParameterStore& store, std::uint64_t seed) const {
  const auto channels = static_cast<double>(store.entry(in_proj_weight).shape[1]);
  init_uniform(store, in_proj_weight, seed, std::sqrt(6 / (4 * channels)));
  init_constant(store, in_proj_bias, 0);
  out_proj.init(store, seed);
  init_constant(store, out_proj.bias, 0);
}

Var MultiHeadAttention::operator()(Var x, std::span<const std::int32_t> lengths, const Pass& pass) const {
  Tape& tape = x.tape();
  AttentionOptions options;
  options.heads = heads;
  options.mask = {causal, lengths};
  options.hooks = pass.hooks;
  options.site = &weights_site;
  if (pass.training && dropout.p > 0) {
    options.dropout = dropout.p;
    options.key = pass.dropout_key(dropout.site);
  }
  const Var qkv = linear(x, tape.parameter(in_proj_weight), tape.parameter(in_proj_bias));
  return out_proj(site(pass.hooks, output_site, self_attention(qkv, options)));
}

}  // namespace thimble::inline THIMBLE_PRECISION
