// Inputs and cases for the gradient checks of ops.
#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/ops/gradcheck_cases.h"
#include "thimble/engine/ops.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

using Inputs = std::span<const Var>;

// Returns normal values around a mean, different for every name.
inline GradcheckInput normal(const std::string& name, const Shape& shape, Real mean = 0) {
  const Random random(std::hash<std::string>{}(name), Stream::gradcheck);
  Tensor value(shape);
  std::uint64_t i = 0;
  for (Real& x : value.values()) x = mean + static_cast<Real>(random.normal(i++));
  return {name, value};
}

// Returns normal values that are at least 0.1 away from the kink at 0.
inline GradcheckInput away_from_zero(const std::string& name, const Shape& shape) {
  GradcheckInput input = normal(name, shape);
  for (Real& x : input.value.values()) x += std::copysign(Real(0.1), x);
  return input;
}

// Returns the input with a gradient that is zero by construction.
inline GradcheckInput zero_gradient(GradcheckInput input) {
  input.zero_gradient = true;
  return input;
}

// Returns cases of a function of one input: several dimensions, a size of 1, and more columns than a vector.
inline std::vector<GradcheckCase> unary(const std::string& op, const std::function<Var(Var)>& f) {
  const auto call = [f](Tape&, Inputs in) { return f(in[0]); };
  return {{op, "", {away_from_zero("x", {2, 3, 7})}, call},
          {op, "one row", {away_from_zero("x", {1, 5})}, call},
          {op, "40 columns", {away_from_zero("x", {2, 40})}, call}};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
