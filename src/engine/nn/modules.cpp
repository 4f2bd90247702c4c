#include "thimble/engine/modules.h"

#include <cmath>

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

std::optional<Parameter> add_if(bool condition, ParameterStore& store, const std::string& name,
                                const Shape& shape) {
  return condition ? std::optional(store.add(name, shape)) : std::nullopt;
}

// Returns the parameter, or a constant in its place that changes nothing.
Var parameter_or(Tape& tape, const std::optional<Parameter>& p, std::int64_t channels, Real neutral) {
  if (p) return tape.parameter(*p);
  return tape.constant(Tensor({channels}, std::vector<Real>(static_cast<std::size_t>(channels), neutral)));
}

}  // namespace

std::optional<Var> parameter_if(Tape& tape, const std::optional<Parameter>& p) {
  return p ? std::optional(tape.parameter(*p)) : std::nullopt;
}

Linear::Linear(ParameterStore& store, const std::string& name, std::int64_t in, std::int64_t out,
               bool has_bias)
    : weight(store.add(name + ".weight", {out, in})), bias(add_if(has_bias, store, name + ".bias", {out})) {}

void Linear::init(ParameterStore& store, std::uint64_t seed) const {
  const double bound = 1 / std::sqrt(static_cast<double>(store.entry(weight).shape[1]));
  init_uniform(store, weight, seed, bound);
  if (bias) init_uniform(store, *bias, seed, bound);
}

Var Linear::operator()(Columns x) const {
  Tape& tape = x.source.tape();
  return linear(x, tape.parameter(weight), parameter_if(tape, bias));
}

LayerNorm::LayerNorm(ParameterStore& store, const std::string& name, std::int64_t channels,
                     double the_epsilon, NormParts parts)
    : weight(add_if(parts.weight, store, name + ".weight", {channels})),
      bias(add_if(parts.weight && parts.bias, store, name + ".bias", {channels})),
      epsilon(the_epsilon) {}

void LayerNorm::init(ParameterStore& store) const {
  if (weight) init_constant(store, *weight, 1);
  if (bias) init_constant(store, *bias, 0);
}

Var LayerNorm::operator()(Var x) const {
  Tape& tape = x.tape();
  const std::int64_t channels = x.shape().last();
  return layer_norm(x, parameter_or(tape, weight, channels, 1), parameter_or(tape, bias, channels, 0),
                    static_cast<Real>(epsilon));
}

RmsNorm::RmsNorm(ParameterStore& store, const std::string& name, std::int64_t channels, double the_epsilon,
                 bool has_weight)
    : weight(add_if(has_weight, store, name + ".weight", {channels})), epsilon(the_epsilon) {}

void RmsNorm::init(ParameterStore& store) const {
  if (weight) init_constant(store, *weight, 1);
}

Var RmsNorm::operator()(Var x) const {
  return rms_norm(x, parameter_or(x.tape(), weight, x.shape().last(), 1), static_cast<Real>(epsilon));
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
                         std::int64_t window_size, bool is_causal, bool has_bias)
    : weight(store.add(name + ".weight", {channels, channels, window_size})),
      bias(add_if(has_bias, store, name + ".bias", {channels})),
      window(window_size),
      causal(is_causal) {}

void Convolution::init(ParameterStore& store, std::uint64_t seed) const {
  const Shape& shape = store.entry(weight).shape;
  const double bound = 1 / std::sqrt(static_cast<double>(shape[1] * shape[2]));
  init_uniform(store, weight, seed, bound);
  if (bias) init_uniform(store, *bias, seed, bound);
}

Var Convolution::operator()(Var x, std::span<const std::int32_t> lengths) const {
  Tape& tape = x.tape();
  return linear(unfold(x, window, causal, lengths), tape.parameter(weight), parameter_if(tape, bias));
}

Var Dropout::operator()(Var x, const ForwardOptions& options) const {
  if (!options.training || p == 0) return x;
  return dropout(x, p, options.dropout_key(site));
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
