// Suggestions for unknown keys.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/fields.h"

namespace thimble::config {

// Returns the keys by the names that other tools have for them: "train.batch" for "batch_size".
const std::map<std::string_view, std::string_view>& other_names();

// Returns the path of the key that was most likely meant by `key` in the section `parent` ("" or "a.b."), in
// whichever section it is: one that other tools call so, one of that name, or one of a similar name; or "".
std::string nearest_path(const std::string& parent, std::string_view key, const std::vector<Named>& all);

// Returns what to do instead of setting a key that other tools have and thimble has not, or "".
std::string_view advice(std::string_view key);

}  // namespace thimble::config
