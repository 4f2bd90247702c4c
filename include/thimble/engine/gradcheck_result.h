// The result of a gradient check, for every number type.
#pragma once

#include <string>

namespace thimble {

// Undecided: numerical derivatives were too inexact to confirm or to refute a gradient.
enum class GradcheckVerdict { ok, wrong, undecided };

// The comparison that decided the verdict on one input: the worst one.
struct GradcheckResult {
  std::string op;
  std::string input;
  // |analytic - numeric| / max(|analytic|, 1e-2 times the largest gradient of this input)
  double worst_error = 0;
  double analytic = 0, numeric = 0;
  double error = 0;   // bound of the error of `numeric`, from the steps and from rounding
  std::string index;  // "[1, 2]", or "direction 3"
  GradcheckVerdict verdict = GradcheckVerdict::undecided;
  std::string reason;  // why it is wrong, or undecided and what would help; empty where it is ok
};

}  // namespace thimble
