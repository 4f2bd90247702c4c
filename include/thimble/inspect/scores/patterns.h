// The patterns that a head can take up, and which of them names it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace thimble {

// A head has a pattern where the strength of a score (scores.h) is at least kPatternMargin, and at least that
// much above the strength of its value at initialization, if that is known.
inline constexpr double kPatternMargin = 0.25;

// Fewer eligible queries than this are no evidence for a pattern.
inline constexpr std::int64_t kEnoughQueries = 100;

// Patterns describe the same head in more or less specific terms: mirror, induction, previous, next, same and
// duplicate token and this position; then the task's own target; then a fixed offset; then a fixed position.
// The strongest of the first kind that has one within kAmbiguous of the strongest of all gives the name: with
// sequences of one length a previous-token head is one with offset -1, too, and reversal asks for a mirror.
inline constexpr double kAmbiguous = 0.1;

// A score that can name a head. Of a lower kind, a name is more specific.
struct Pattern {
  std::string_view score;
  std::string_view name;  // in a label
  std::string_view noun;  // of a head that has it
  int kind;
};

// Of equally strong ones the first counts: with a causal mask, duplicate tokens are the same tokens.
inline constexpr Pattern kPatterns[] = {
    {"mirror", "mirror", "a mirror head", 0},
    {"induction", "induction", "an induction head", 0},
    {"previous_token", "previous token", "a previous-token head", 0},
    {"next_token", "next token", "a next-token head", 0},
    {"duplicate_token", "duplicate token", "a duplicate-token head", 0},
    {"same_token", "same token", "a same-token head", 0},
    {"self", "this position", "a head that looks at its own position", 0},
    {"task_target", "task target", "a head that looks at what the task names", 1},
    {"offset", "offset", "a head that looks at a fixed offset", 2},
    {"absolute_position", "position", "a head that looks at a fixed position", 3},
};

// The pattern that names a head, see kAmbiguous; null when no strength is known. strength_of(pattern) is
// nothing for a pattern that is out of the question.
const Pattern* naming_pattern(const std::function<std::optional<double>(const Pattern&)>& strength_of);

}  // namespace thimble
