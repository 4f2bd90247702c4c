// Parameters of a model as matrices of doubles.
#pragma once

#include <algorithm>
#include <string_view>

#include "thimble/engine/error.h"
#include "thimble/engine/parameter.h"
#include "thimble/inspect/spectral.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

inline DoubleMatrix in_double(ConstMatrixView from) {
  DoubleMatrix m(from.rows, from.cols);
  for (std::int64_t r = 0; r < from.rows; ++r) std::copy_n(from.row(r), from.cols, m.row(r));
  return m;
}

// Returns a parameter as a matrix; a vector has one row.
inline DoubleMatrix in_double(const ParameterStore& store, Parameter p) {
  const Shape& shape = store.entry(p).shape;
  DoubleMatrix m(shape.rank() == 1 ? 1 : shape[0], shape.last());
  const auto values = store.values(p);
  m.values.assign(values.begin(), values.end());
  return m;
}

// Returns the parameter of a name. Throws Error when there is none.
inline DoubleMatrix in_double(const ParameterStore& store, std::string_view name) {
  const auto& entries = store.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name == name) return in_double(store, Parameter{static_cast<int>(i)});
  }
  throw Error(fmt::format("the model has no parameter {}", name));
}

// Returns the parameter (C), or `value` everywhere if there is none, as (1, C).
inline DoubleMatrix in_double_or(const ParameterStore& store, std::string_view name, std::int64_t channels,
                                 double value) {
  if (std::ranges::find(store.entries(), name, &ParameterStore::Entry::name) != store.entries().end())
    return in_double(store, name);
  DoubleMatrix constant(1, channels);
  std::ranges::fill(constant.values, value);
  return constant;
}

// Returns the weight (V, C) of the output, which may be that of the token embedding.
inline DoubleMatrix output_weight(const Model& model) {
  return in_double(model.parameters(),
                   model.config().output.tied ? "token_embedding.weight" : "output.weight");
}

// Returns the bias (C) of an attention's output, 0 without one.
inline DoubleMatrix output_bias(const MultiHeadAttention& attention, const ParameterStore& store) {
  if (attention.out_proj_bias) return in_double(store, *attention.out_proj_bias);
  return DoubleMatrix(1, store.entry(attention.out_proj_weights[0]).shape[0]);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
