// A head report as a page for the browser.
#pragma once

#include <string>

#include "thimble/core/json.h"

namespace thimble {

// One HTML file that needs no other and no network, from the report that `thimble inspect --json` writes. The
// user's own sequence, "input" in the form of an example, is shown before the examples if there is one.
// Attention weights of examples are stored in steps of 1/65535, or of 1/255 where that would take more than 2
// MiB; mean weights and rollout in steps of 1/65535; matrices of tokens in steps of their largest magnitude /
// 32767; every other number as it is. Throws NumericError for a weight outside [0, 1] or one that is not
// finite, ShapeError for a ragged map.
std::string html_page(const Json& report);

}  // namespace thimble
