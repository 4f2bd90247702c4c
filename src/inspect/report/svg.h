// The attention of one head as an SVG figure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace thimble {

// Returns an SVG 1.1 file. weights (queries, keys): 0 is white and 1 the darkest blue, as in the light theme
// of the HTML report; NaN is a masked key, drawn hatched. For means, `counts` says over how many sequences
// each is: cells of none are hatched, those of fewer than EvalResult::kEnoughSequences have a dot. Throws
// ShapeError when the weights are not queries x keys, NumericError for a weight outside [0, 1].
std::string head_svg(const std::string& title, const std::vector<std::string>& queries,
                     const std::vector<std::string>& keys, const std::vector<double>& weights,
                     std::span<const std::int64_t> counts = {});

}  // namespace thimble
