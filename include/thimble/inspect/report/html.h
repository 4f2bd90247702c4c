// A head report as a page for the browser.
#pragma once

#include <string>

#include "thimble/inspect/report/inspect.h"

namespace thimble {

// Returns one HTML file that needs no other and no network. The user's own sequence, if any, is shown before
// the examples. Attention weights of examples are stored in steps of 1/65535, or of 1/255 where that would
// take more than 2 MiB; mean weights and rollout in steps of 1/65535; matrices of tokens in steps of their
// largest magnitude / 32767; every other number as in the JSON report. Throws NumericError for a weight
// outside [0, 1] or one that is not finite.
std::string html_page(const InspectReport& report, const ForwardTrace* own = nullptr);

}  // namespace thimble
