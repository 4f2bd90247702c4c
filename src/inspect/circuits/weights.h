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

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
