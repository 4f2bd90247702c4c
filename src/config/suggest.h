// Which key somebody who wrote a wrong one may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace thimble::config {

// Returns the path of the key that was most likely meant by `key` in the section `parent` ("" or "a.b."),
// wherever it stands: a name of another tool, the same name in another section or a similar one; or "".
std::string nearest_path(const std::string& parent, std::string_view key, const std::vector<Named>& all);

// Returns what to do instead of setting a key that other tools have and thimble has not, or "".
std::string_view advice(std::string_view key);

}  // namespace thimble::config
