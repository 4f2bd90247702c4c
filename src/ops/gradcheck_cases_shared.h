// What the gradient cases of ops are made of.
#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "thimble/ops/gradcheck_cases.h"
#include "thimble/ops/ops.h"

namespace thimble::inline THIMBLE_PRECISION {

using Inputs = std::span<const Var>;

// Normal values, different for every name.
inline GradcheckInput normal(const std::string& name, const Shape& shape) {
  const Random random(std::hash<std::string>{}(name), Stream::gradcheck);
  Tensor value(shape);
  std::uint64_t i = 0;
  for (Real& x : value.values()) x = static_cast<Real>(random.normal(i++));
  return {name, value};
}

// The same, at least 0.1 away from the kink at 0.
inline GradcheckInput away_from_zero(const std::string& name, const Shape& shape) {
  GradcheckInput input = normal(name, shape);
  for (Real& x : input.value.values()) x += std::copysign(Real(0.1), x);
  return input;
}

inline GradcheckInput zero_gradient(GradcheckInput input) {
  input.zero_gradient = true;
  return input;
}

// Those of attention and of its parts.
void add_attention_cases(std::vector<GradcheckCase>& cases);

}  // namespace thimble::inline THIMBLE_PRECISION
