// Writes the values of a section.
#pragma once

#include <map>
#include <string>

#include "thimble/train/json.h"
#include "train/config/fields.h"

namespace thimble::config {

using Origins = std::map<std::string, SourceLocation>;  // of values, by dotted path; without defaults

// Returns YAML; with origins, each value has a comment with its origin, else see Field::newer.
std::string yaml(const Section&, const Origins* origins = nullptr);

// Returns the values as nested objects, all of them or as Field::newer says.
Json json(const Section&, bool all = true);

}  // namespace thimble::config
