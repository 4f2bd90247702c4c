// What somebody who wrote a wrong name may have meant.
#pragma once

#include <span>
#include <string_view>

namespace thimble {

// 1 - d / (|a| + |b|), where d is the edit distance in single-character insertions and deletions, case
// ignored: 1 for equal names, 0 for names without a common letter.
double similarity(std::string_view a, std::string_view b);

// Lets num_heads find heads, and epochs not find steps.
inline constexpr double kSimilarEnough = 0.6;

// The most similar name, or "" when none is similar enough to be worth a guess.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names);

}  // namespace thimble
