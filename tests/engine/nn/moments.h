// Checks of the distributions of initial values.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "catch.h"
#include "thimble/engine/parameter.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

struct Moments {
  double largest = 0, mean = 0, deviation = 0;
  bool constant = true;
};

inline Moments moments_of(const ParameterStore& store, Parameter p) {
  const auto values = store.values(p);
  const auto n = static_cast<double>(values.size());
  Moments m;
  for (const Real x : values) {
    m.largest = std::max(m.largest, std::abs(double(x)));
    m.mean += double(x) / n;
    m.constant = m.constant && x == values[0];
  }
  for (const Real x : values) m.deviation += (double(x) - m.mean) * (double(x) - m.mean) / n;
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// Checks that values are uniform in +-bound: none beyond, the largest near it, mean and deviation within four
// standard errors.
inline void expect_uniform(const ParameterStore& store, Parameter p, double bound) {
  const std::string name = store.entry(p).name;
  CAPTURE(name, bound);
  const Moments m = moments_of(store, p);
  const auto n = static_cast<double>(store.values(p).size());
  CHECK(m.largest <= bound * (1 + 1e-6));
  CHECK(m.largest > bound * (1 - 12 / n));
  CHECK_THAT(m.mean, WithinAbs(0, 4 * bound / std::sqrt(3 * n)));
  CHECK_THAT(m.deviation, WithinRel(bound / std::sqrt(3), 4 * std::sqrt(0.2 / n)));
}

inline void expect_normal(const ParameterStore& store, Parameter p, double deviation) {
  const Moments m = moments_of(store, p);
  const auto n = static_cast<double>(store.values(p).size());
  CHECK_THAT(m.mean, WithinAbs(0, 4 * deviation / std::sqrt(n)));
  CHECK_THAT(m.deviation, WithinRel(deviation, 4 * std::sqrt(0.5 / n)));
  CHECK(m.largest > 2.5 * deviation);
}

inline void expect_constant(const ParameterStore& store, Parameter p, Real value) {
  CHECK(moments_of(store, p).constant);
  CHECK(store.values(p)[0] == value);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
