// How far two computations of the same numbers may be apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "thimble/engine/model_config.h"
#include "thimble/engine/real.h"

namespace thimble {

// For two passes over the same tokens in batches of other shapes, with and without padding for instance. BLAS
// adds up a product's terms in an order that depends on the CPU and on the number of rows, so the bits may
// differ. A product of K terms is off by about sqrt(2 K) u times its size, u the unit round-off (independent
// roundings, Higham and Mary 2019); there are at most 12 in a layer and 2 outside, norms keep sizes as they
// are, and 8 is for both passes and for what norms and softmax add. `largest` is that of the numbers
// compared.
inline double rounding_of(const ModelConfig& model, double largest) {
  const double roundoff = std::numeric_limits<Real>::epsilon() / 2;
  const auto terms = static_cast<double>(std::max(model.d_model, model.d_ff));
  const auto products = static_cast<double>(12 * model.layers + 2);
  return 8 * products * std::sqrt(2 * terms) * roundoff * std::max(1.0, largest);
}

// Whether they are as many, and none further apart than rounding_of.
inline bool same_but_for_rounding(const ModelConfig& model, const std::vector<double>& a,
                                  const std::vector<double>& b) {
  double largest = 0;
  for (const double x : b) largest = std::max(largest, std::abs(x));
  return std::ranges::equal(
      a, b, [bound = rounding_of(model, largest)](double x, double y) { return std::abs(x - y) <= bound; });
}

}  // namespace thimble
