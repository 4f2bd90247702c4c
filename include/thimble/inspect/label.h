// What a head is called. A label is a claim, made only where pattern and effect agree: the head looks at
// something more than chance and more than before training, and the model is worse without it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "thimble/inspect/effects.h"
#include "thimble/inspect/scores.h"

namespace thimble {

// A head has a pattern where the strength of a score (scores.h) is at least kPatternMargin, and at least that
// much above the strength of its value at initialisation, if that is known.
inline constexpr double kPatternMargin = 0.25;

// Fewer eligible queries than this are no evidence for a pattern.
inline constexpr std::int64_t kEnoughQueries = 100;

// Patterns describe the same head in more or less specific terms: mirror, induction, previous, next, same and
// duplicate token and this position; then the task's own target; then a fixed offset; then a fixed position.
// The strongest of the first kind that has one within kAmbiguous of the strongest of all gives the name: with
// sequences of one length a previous-token head is one with offset -1, too, and reversal asks for a mirror.
inline constexpr double kAmbiguous = 0.1;

// A head without any of these is uniform when its entropy is at least kUniformEntropy and at most
// kUniformShare as far from 1 as at initialisation: untrained heads are nearly uniform, so where that is not
// known none is called so.
inline constexpr double kUniformEntropy = 0.99;
inline constexpr double kUniformShare = 0.25;

enum class Verdict {
  shown,       // pattern and effect
  no_effect,   // a pattern, but nothing depends on the head
  no_pattern,  // the model needs the head, for no known pattern
  not_enough,  // too few eligible queries to tell
  none,        // neither pattern nor effect
};
std::string_view verdict_name(Verdict);

struct Label {
  std::string name;  // "mirror", "previous token", "offset -3", "position 0", ...; "": no known pattern
  Verdict verdict = Verdict::none;
  std::string sentence;  // for people, with the numbers that it rests on
};

// scores: all that HeadScorer gives, with at_init where it is known; zero: what setting the head's output to
// zero does. The model is worse without the head if the interval of the change of loss lies above 0, or that
// of accuracy below 0.
Label label_head(std::span<const HeadScore> scores, const Effect& zero);

}  // namespace thimble
