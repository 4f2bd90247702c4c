// Results of gradient checks as a whole, and as JSON.
#pragma once

#include <span>
#include <string_view>

#include "thimble/engine/gradcheck_result.h"
#include "thimble/train/json.h"

namespace thimble {

// Returns "ok", "wrong" or "undecided".
std::string_view to_string(GradcheckVerdict verdict);

// Returns whether no gradient is wrong and at least one is ok.
bool passed(std::span<const GradcheckResult> results);

// Returns [{"op", "input", "worst_error", "analytic", "numeric", "index", "error", "verdict"}], with "reason" where it is
// wrong or undecided.
Json to_json(std::span<const GradcheckResult> results);

}  // namespace thimble
