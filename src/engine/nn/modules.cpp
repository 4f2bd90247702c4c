#include "thimble/engine/modules.h"

#include <cmath>

namespace thimble {
inline namespace THIMBLE_PRECISION {

Linear::Linear(ParameterStore& store, const std::string& name, std::int64_t in, std::int64_t out)
    : weight(store.add(name + ".weight", {out, in})), bias(store.add(name + ".bias", {out})) {}

void Linear::init(ParameterStore& store, std::uint64_t seed) const {
  const double bound = 1 / std::sqrt(static_cast<double>(store.entry(weight).shape[1]));
  init_uniform(store, weight, seed, bound);
  init_uniform(store, bias, seed, bound);
}

Var Linear::operator()(Columns x) const {
  Tape& tape = x.source.tape();
  return linear(x, tape.parameter(weight), tape.parameter(bias));
}

LayerNorm::LayerNorm(ParameterStore& store, const std::string& name, std::int64_t channels,
                     double the_epsilon)
    : weight(store.add(name + ".weight", {channels})),
      bias(store.add(name + ".bias", {channels})),
      epsilon(the_epsilon) {}

void LayerNorm::init(ParameterStore& store) const {
  init_constant(store, weight, 1);
  init_constant(store, bias, 0);
}

Var LayerNorm::operator()(Var x) const {
  return layer_norm(x, x.tape().parameter(weight), x.tape().parameter(bias), static_cast<Real>(epsilon));
}

RmsNorm::RmsNorm(ParameterStore& store, const std::string& name, std::int64_t channels, double the_epsilon)
    : weight(store.add(name + ".weight", {channels})), epsilon(the_epsilon) {}

void RmsNorm::init(ParameterStore& store) const { init_constant(store, weight, 1); }

Var RmsNorm::operator()(Var x) const {
  return rms_norm(x, x.tape().parameter(weight), static_cast<Real>(epsilon));
}

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
  return linear(unfold(x, window, causal, lengths), x.tape().parameter(weight), x.tape().parameter(bias));
}

Var Dropout::operator()(Var x, const ForwardOptions& options) const {
  if (!options.training || p == 0) return x;
  return dropout(x, p, options.dropout_key(site));
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
