// What somebody who wrote a wrong name may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace thimble::config {

// 1 - d / (|a| + |b|), where d is the edit distance in single-character insertions and deletions, case
// ignored: 1 for equal names, 0 for names without a common letter.
double similarity(std::string_view a, std::string_view b);

// The most similar name, or "" when none is similar enough to be worth a guess.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names);

// The path of the key that was most likely meant by `key` in the section `parent` ("" or "a.b."), wherever it
// stands; or "".
std::string nearest_path(const std::string& parent, std::string_view key, const std::vector<Named>& all);

}  // namespace thimble::config
