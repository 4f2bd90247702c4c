// Numbers in the JSON that a run leaves.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/reproduce/experiment.h"

namespace thimble {

// Returns everything in the document that the path leads to, in its order: keys and indices with dots
// between, * for any.
std::vector<const Json*> find_all(const Json& document, std::string_view path);

// Values measured so far on a seed, by name; NaN for what could not be measured.
using Values = std::map<std::string, double>;

// Returns the value, taken from its document. true counts as 1, null as nothing. Throws DataError when
// nothing is found and there is no `otherwise`, when several numbers are and none is chosen, and when it is a
// text.
double measure(const Json& document, const ExperimentValue& value, const Values& known);

// Returns whether x is within the bound; nothing is if one of them is NaN.
bool holds(const Bound& bound, double x, const Values& known);

// Returns "accuracy >= 0.99", "with > without + 0.1".
std::string describe(const Condition& condition);

}  // namespace thimble
