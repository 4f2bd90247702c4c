// One head's attention as a drawing for a paper.
#pragma once

#include <string>
#include <vector>

namespace thimble {

// An SVG 1.1 file. weights (queries, keys): of query i on key j, 0 is drawn white and 1 in the darkest blue,
// on the scale that the HTML report has in its light colors; NaN is a key that the mask hides, drawn
// hatched. Throws ShapeError when the weights are not queries x keys, NumericError for a weight outside [0,
// 1].
std::string head_svg(const std::string& title, const std::vector<std::string>& queries,
                     const std::vector<std::string>& keys, const std::vector<double>& weights);

}  // namespace thimble
