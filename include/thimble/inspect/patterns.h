// The patterns of heads, and which of them names a head.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "thimble/inspect/scores.h"

namespace thimble {

// A head has a pattern where the strength of a score (scores.h) is at least kPatternMargin, and at least
// kPatternMargin above its strength at initialization, if that is known. On varied examples, which are less
// familiar, it must be at least half of that, or kPatternMargin.
inline constexpr double kPatternMargin = 0.25;

// Besides, the odds of the value must be at least kMatchedOdds times those of matched chance, value /
// (attainable - value) against matched / (attainable - matched): on varied examples of the strictest
// baseline, on the usual ones of same_class, as these may not part position and content (data of one length).
inline constexpr double kMatchedOdds = 2;

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
  bool content;  // whether it is about tokens and not about positions
};

// The first of equally strong patterns wins: with a causal mask, duplicate tokens are the same tokens.
inline constexpr Pattern kPatterns[] = {
    {"mirror", "mirror", "a mirror head", 0, false},
    {"induction", "induction", "an induction head", 0, true},
    {"previous_token", "previous token", "a previous-token head", 0, false},
    {"next_token", "next token", "a next-token head", 0, false},
    {"duplicate_token", "duplicate token", "a duplicate-token head", 0, true},
    {"same_token", "same token", "a same-token head", 0, true},
    {"self", "this position", "a head that attends to its own position", 0, false},
    {"task_target", "task target", "a task-target head", 1, true},
    {"offset", "offset", "a fixed-offset head", 2, false},
    {"absolute_position", "position", "a fixed-position head", 3, false},
};

// The pattern that names a head.
struct FoundPattern {
  std::string name;     // "induction", "offset -15", "task target (agent)"; empty: there is none
  std::string numbers;  // "79 % of its attention (chance 8 %, matched 12 %), 75 % where ..."
  std::string_view score;
  std::int64_t eligible = 0;  // queries, on the usual or the varied examples, whichever is less
};

// Finds the pattern that names a head from all its scores, see kPatternMargin and kAmbiguous, among those
// with at least `queries` eligible queries. A task target of several kinds is named after its kind if the
// head has the pattern for one kind only. Without varied examples there is no pattern of content.
FoundPattern find_pattern(std::span<const HeadScore> scores, std::int64_t queries = kEnoughQueries);

// Returns the pattern that names a head, see kAmbiguous; null when no strength is known. strength_of(pattern)
// returns nullopt for a pattern that is excluded.
const Pattern* naming_pattern(const std::function<std::optional<double>(const Pattern&)>& strength_of);

}  // namespace thimble
