// Results of gradient checks as JSON.
#pragma once

#include <span>

#include "thimble/autograd/gradcheck_result.h"
#include "thimble/core/json.h"

namespace thimble {

// Returns [{"op", "input", "worst_error", "analytic", "numeric", "index", "passed"}], with "failure" where it failed.
Json to_json(std::span<const GradcheckResult> results);

}  // namespace thimble
