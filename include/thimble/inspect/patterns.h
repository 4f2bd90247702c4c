// The patterns of heads, and which of them names a head.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/inspect/scores.h"

namespace thimble {

// A head has a pattern where the strength of a score (scores.h) is at least kPatternMargin, and at least
// kPatternMargin above its strength at initialization, if that is known. On varied examples, which are less
// familiar, it must be at least half of that; of content, kPatternMargin is enough.
inline constexpr double kPatternMargin = 0.25;

// Besides, the odds of the value must be at least kMatchedOdds times those of matched chance, value /
// (attainable - value) against matched / (attainable - matched): on varied examples of the strictest
// baseline, on the usual ones of same_class, as these may not part position and content (data of one length).
inline constexpr double kMatchedOdds = 2;

// The smallest number of eligible queries that is evidence for a pattern.
inline constexpr std::int64_t kEnoughQueries = 100;

// Patterns (kScoreTable) describe a head in more or less specific terms: kind 1 is the task's own target, kind 2 a
// fixed offset, kind 3 a fixed position, kind 0 all others. The name is the strongest pattern of the first kind
// that has one within kAmbiguous of the strongest of all: a previous-token head also has offset -1, and the task
// target of reversal is the mirror.
inline constexpr double kAmbiguous = 0.1;

// A pattern that has more than half of the attention at a share of the queries between kSplit and 1 - kSplit says so: a mean
// of 50 % may be all of the attention of every second query.
inline constexpr double kSplit = 0.25;

// The pattern that names a head.
struct FoundPattern {
  std::string name;     // "induction", "offset -15", "task target (agent)"; empty: there is none
  std::string numbers;  // "79 % of its attention (chance 8 %, matched 12 %), 75 % where ..."
  std::string_view score;
  std::int64_t eligible = 0;         // queries, on the usual or the varied examples, whichever is less
  std::optional<std::int64_t> at{};  // the best k, of an offset or a position
  std::string_view kind{};           // of a task target, where it names one
  bool is_rival = false;  // that the head does not have: its cells are compared with those of others
  bool is_unconfirmed =
      false;  // of a hypothesis: that it has on the usual examples, but not on shuffled ones
};

// Finds the pattern that names a head from all its scores, see kPatternMargin and kAmbiguous, among those
// with at least `queries` eligible queries. A task target of several kinds is named after its kind if the
// head has the pattern for one kind only. Without varied examples there is no pattern of content.
FoundPattern find_pattern(std::span<const HeadScore> scores, std::int64_t queries = kEnoughQueries);

// Returns ", 53 % where position and content part" for a pattern of positions that is clearly weaker there, else "".
std::string varied_text(const HeadScore&);

// A head is uniform where its normalized entropy is at least kUniformEntropy, and at most kUniformShare as far from 1 as at
// initialization. Untrained heads are nearly uniform, so none is where that is unknown.
inline constexpr double kUniformEntropy = 0.99;
inline constexpr double kUniformShare = 0.25;

// Returns the pattern that names a head, or else "uniform".
FoundPattern pattern_of(std::span<const HeadScore> scores);

// Returns the task target of a score, a hypothesis, as a pattern, a rival where the head does not have it. Of a `positional` one,
// whose keys follow from the length, heads that follow positions are no simpler ones, and where varied examples are `shuffled`
// the usual ones decide.
FoundPattern hypothesis_pattern(HeadScore score, bool positional, bool shuffled);

// Returns the patterns whose cells decide what such a pattern is called: itself, or of a task target with several kinds that
// of all of them, and then each; those that the head does not have are rivals.
std::vector<FoundPattern> alternatives(const FoundPattern& found, std::span<const HeadScore> scores);

// Returns the pattern that a head has on the usual examples, but not on varied ones.
FoundPattern find_unconfirmed(std::span<const HeadScore> scores);

// Returns the score whose pattern names a head, see kAmbiguous; null when no strength is known.
// strength_of(score), of scores with a pattern, returns nullopt for one that is excluded.
const ScoreInfo* naming_pattern(const std::function<std::optional<double>(const ScoreInfo&)>& strength_of);

}  // namespace thimble
