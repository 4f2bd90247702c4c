// The values of a section, written out.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/fields.h"

namespace thimble::config {

std::string yaml(const Section&);

// Each value with a comment that says where it comes from; `origins` of dotted paths, none for a default.
std::string yaml(const Section&, const std::map<std::string, Origin>& origins);

nlohmann::ordered_json json(const Section&);

}  // namespace thimble::config
