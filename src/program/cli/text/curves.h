// The curves of a run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "thimble/inspect/timeline.h"

namespace thimble::cli {

// Draws loss and accuracy by step in `width` columns, at least 40: training as a line through the mean of the steps in
// each column, and evaluations as o. Lines are braille characters, or with `plain` ASCII. Empty without points.
std::string curves_text(const std::vector<CurvePoint>& points, bool plain, std::size_t width);

}  // namespace thimble::cli
