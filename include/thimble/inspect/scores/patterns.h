// The patterns of heads, and which of them names a head.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace thimble {

// A head has a pattern where the strength of a score (scores.h) is at least kPatternMargin, and at least
// kPatternMargin above its strength at initialization, if that is known.
inline constexpr double kPatternMargin = 0.25;

// The smallest number of eligible queries that is evidence for a pattern.
inline constexpr std::int64_t kEnoughQueries = 100;

// Patterns describe a head in more or less specific terms: kind 0 is mirror, induction, previous, next, same
// and duplicate token and this position; kind 1 the task's own target; kind 2 a fixed offset; kind 3 a fixed
// position. The name is the strongest pattern of the first kind that has one within kAmbiguous of the
// strongest of all: a previous-token head also has offset -1, and the task target of reversal is the mirror.
inline constexpr double kAmbiguous = 0.1;

// A score that can name a head. Names of lower kinds are more specific.
struct Pattern {
  std::string_view score;
  std::string_view name;  // in a label
  std::string_view noun;  // a head with the pattern
  int kind;
};

// The first of equally strong patterns wins: with a causal mask, duplicate tokens are the same tokens.
inline constexpr Pattern kPatterns[] = {
    {"mirror", "mirror", "a mirror head", 0},
    {"induction", "induction", "an induction head", 0},
    {"previous_token", "previous token", "a previous-token head", 0},
    {"next_token", "next token", "a next-token head", 0},
    {"duplicate_token", "duplicate token", "a duplicate-token head", 0},
    {"same_token", "same token", "a same-token head", 0},
    {"self", "this position", "a head that attends to its own position", 0},
    {"task_target", "task target", "a task-target head", 1},
    {"offset", "offset", "a fixed-offset head", 2},
    {"absolute_position", "position", "a fixed-position head", 3},
};

// Returns the pattern that names a head, see kAmbiguous; null when no strength is known. strength_of(pattern)
// returns nullopt for a pattern that is excluded.
const Pattern* naming_pattern(const std::function<std::optional<double>(const Pattern&)>& strength_of);

}  // namespace thimble
