// The values of a section, written out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "config/fields.h"

namespace thimble::config {

std::string yaml(const Section&);
nlohmann::ordered_json json(const Section&);

}  // namespace thimble::config
