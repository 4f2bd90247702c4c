// Suggestions for misspelled names.
#pragma once

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

// Returns the most similar name, or "" when none reaches kSimilarEnough.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names);

// Returns ", did you mean NEAREST?", or "" without a nearest_name().
std::string did_you_mean(std::string_view name, std::span<const std::string_view> names);
std::string did_you_mean(std::string_view name, const std::vector<std::string>& names);

}  // namespace thimble
