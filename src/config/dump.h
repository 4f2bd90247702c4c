// The values of a section, written out.
#pragma once

#include <map>
#include <string>

#include "config/fields.h"
#include "thimble/core/json.h"

namespace thimble::config {

std::string yaml(const Section&);

// Each value with a comment that says where it comes from; `origins` of dotted paths, none for a default.
std::string yaml(const Section&, const std::map<std::string, SourceLocation>& origins);

Json json(const Section&);

}  // namespace thimble::config
