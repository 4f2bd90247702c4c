// Suggestions for misspelled names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

// Returns 1 - d / (|a| + |b|), where d is the edit distance in single-character insertions and deletions,
// case ignored: 1 for equal names, 0 for names without a common letter.
double similarity(std::string_view a, std::string_view b);

// The least similarity of a suggestion: num_heads suggests heads, epochs does not suggest steps.
inline constexpr double kSimilarEnough = 0.6;

// Returns the name of what other tools call `name`, else the most similar one, or "" when none reaches kSimilarEnough.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names);

// Returns ", did you mean NEAREST?", or "" without a nearest_name().
std::string did_you_mean(std::string_view name, std::span<const std::string_view> names);
std::string did_you_mean(std::string_view name, const std::vector<std::string>& names);

// Returns ", did you mean 1000?" for a number such as 1e3 that an integer from `low` to `high` could be written as, or "".
std::string did_you_mean(std::string_view number, std::int64_t low, std::int64_t high);

}  // namespace thimble
