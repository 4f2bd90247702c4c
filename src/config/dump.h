// The values of a section, written out.
#pragma once

#include <map>
#include <string>

#include "config/fields.h"
#include "thimble/core/json.h"

namespace thimble::config {

using Origins = std::map<std::string, SourceLocation>;  // of values, by dotted path; none for a default

// Returns YAML; with origins each value has a comment that says where it comes from.
std::string yaml(const Section&, const Origins* origins = nullptr);

Json json(const Section&);

}  // namespace thimble::config
