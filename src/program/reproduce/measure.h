// Finds numbers in the JSON documents of a run.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "program/reproduce/experiment.h"
#include "thimble/train/json.h"

namespace thimble {

// Returns the nodes of the document that match the path, in their order: keys and indices separated by dots,
// * for any.
std::vector<const Json*> find_all(const Json& document, std::string_view path);

// The values measured so far on a seed, by name; NaN for a failed measurement.
using Values = std::map<std::string, double>;

// Returns the value in its document. true counts as 1; null is skipped. Throws DataError when nothing matches
// and there is no `otherwise`, when several numbers match and `take` is `only`, and when a match is not a
// number.
double measure(const Json& document, const ExperimentValue& value, const Values& known);

// Returns whether x is within the bound; false if one of them is NaN.
bool holds(const Bound& bound, double x, const Values& known);

// Returns the condition as text, such as "accuracy >= 0.99" or "with > without + 0.1".
std::string describe(const Condition& condition);

}  // namespace thimble
