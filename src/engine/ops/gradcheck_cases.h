// The cases on which every op's gradient is checked. scripts/check_layout.sh requires one for each op.
#pragma once

#include <string>
#include <vector>

#include "thimble/engine/gradcheck.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// One call of an op.
struct GradcheckCase {
  std::string op;       // as declared in ops.h
  std::string variant;  // what is special about this case, may be empty
  std::vector<GradcheckInput> inputs;
  GradcheckFunction f;
};

// Returns the cases of all ops.
std::vector<GradcheckCase> gradcheck_cases();

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
