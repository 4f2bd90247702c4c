// The result of a gradient check, for every number type.
#pragma once

#include <string>

namespace thimble {

// The worst element of one input.
struct GradcheckResult {
  std::string op;
  std::string input;
  double worst_error =
      0;  // |analytic - numeric| / max(|analytic|, |numeric|, 1e-3 times the largest of this input)
  double analytic = 0, numeric = 0;
  std::string index;  // "[1, 2]", or "direction 3"
  bool passed = false;
  std::string failure;  // the reason, when `passed` is false
};

inline constexpr double kGradcheckTolerance = 1e-6;

}  // namespace thimble
