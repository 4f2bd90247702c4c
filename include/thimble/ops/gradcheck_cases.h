// The cases on which every op's gradient is checked. Each op has at least one, or the build's layout check
// fails.
#pragma once

#include <string>
#include <vector>

#include "thimble/autograd/gradcheck.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

struct GradcheckCase {
  std::string op;       // as declared in ops.h
  std::string variant;  // what is special about this case, may be empty
  std::vector<GradcheckInput> inputs;
  GradcheckFunction f;
};

std::vector<GradcheckCase> gradcheck_cases();

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
