// Which key somebody who wrote a wrong one may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace thimble::config {

// The path of the key that was most likely meant by `key` in the section `parent` ("" or "a.b."), wherever it
// stands; or "".
std::string nearest_path(const std::string& parent, std::string_view key, const std::vector<Named>& all);

}  // namespace thimble::config
