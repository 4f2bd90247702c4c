// What a head is called. A label is a claim, made only where pattern and effect agree: the head looks at
// something more than chance and more than before training, and the model is worse without it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "thimble/inspect/effects/effects.h"
#include "thimble/inspect/scores/patterns.h"
#include "thimble/inspect/scores/scores.h"

namespace thimble {

// A head without any pattern of patterns.h is uniform when its entropy is at least kUniformEntropy and at
// most kUniformShare as far from 1 as at initialization: untrained heads are nearly uniform, so where that is
// not known none is called so.
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
