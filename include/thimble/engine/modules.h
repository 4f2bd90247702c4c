// Modules: plain structs that name their parameters and apply them. A constructor adds the parameters to a
// store, all zero; init() gives them values that depend on (seed, parameter) alone. Parameter names, shapes
// and orientation are PyTorch's. Calls throw ShapeError as the ops do.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "thimble/engine/forward_options.h"
#include "thimble/engine/ops.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Returns Module(arguments...) if the condition is true, else nothing.
template <class Module, class... Arguments>
std::optional<Module> optional_if(bool condition, Arguments&&... arguments) {
  return condition ? std::optional<Module>(std::in_place, std::forward<Arguments>(arguments)...)
                   : std::nullopt;
}

// Returns the value of a parameter that a module may lack.
std::optional<Var> parameter_if(Tape&, const std::optional<Parameter>&);

// An affine map y = x W^T + b, W (out, in), or a linear one without b.
struct Linear {
  Parameter weight;
  std::optional<Parameter> bias;

  Linear(ParameterStore&, const std::string& name, std::int64_t in, std::int64_t out, bool has_bias = true);
  // Sets PyTorch's initial values: weight and bias uniform in +-1 / sqrt(in).
  void init(ParameterStore&, std::uint64_t seed) const;
  Var operator()(Columns x) const;
};

// What a norm has beside the division by the size of its input.
struct NormParts {
  bool weight = true, bias = true;  // a bias only beside a weight
};

// Layer normalization over the last dimension; epsilon is added to the variance.
struct LayerNorm {
  std::optional<Parameter> weight, bias;
  double epsilon;

  LayerNorm(ParameterStore&, const std::string& name, std::int64_t channels, double epsilon = 1e-5,
            NormParts = {});
  void init(ParameterStore&) const;  // weight 1, bias 0
  Var operator()(Var x) const;
};

// RMS normalization over the last dimension; epsilon is added to the mean square.
struct RmsNorm {
  std::optional<Parameter> weight;
  double epsilon;

  RmsNorm(ParameterStore&, const std::string& name, std::int64_t channels, double epsilon = 1e-5,
          bool has_weight = true);
  void init(ParameterStore&) const;  // weight 1
  Var operator()(Var x) const;
};

// A table (rows, channels) of vectors of tokens or positions.
struct Embedding {
  Parameter weight;

  Embedding(ParameterStore&, const std::string& name, std::int64_t rows, std::int64_t channels);
  void init(ParameterStore&, std::uint64_t seed, double standard_deviation) const;  // normal
  Var operator()(Tape&, std::span<const std::int32_t> tokens, std::int64_t length) const;
};

// A convolution over time, as torch.nn.Conv1d with padding that keeps the length: over `window` positions
// around each one (odd), or, if causal, over those that end with it.
struct Convolution {
  Parameter weight;               // (C, C, window)
  std::optional<Parameter> bias;  // (C)
  std::int64_t window;
  bool causal;

  Convolution(ParameterStore&, const std::string& name, std::int64_t channels, std::int64_t window,
              bool causal, bool has_bias = true);
  // Sets PyTorch's initial values: weight and bias uniform in +-1 / sqrt(C window).
  void init(ParameterStore&, std::uint64_t seed) const;
  // Returns (B, T, C) for x (B, T, C), of which lengths (B) positions count, empty: all.
  Var operator()(Var x, std::span<const std::int32_t> lengths) const;
};

// Dropout with probability p, in training.
struct Dropout {
  Real p = 0;
  std::uint32_t site = 0;  // different for every dropout of a model

  Var operator()(Var x, const ForwardOptions&) const;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
