// Labels of heads. A label is given only where pattern and effect agree: the head attends to something more
// than chance and more than at initialization, and ablating the head makes the model worse.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "thimble/inspect/effects/effects.h"
#include "thimble/inspect/scores/patterns.h"
#include "thimble/inspect/scores/scores.h"

namespace thimble {

// A head without a pattern of patterns.h is uniform when its normalized entropy is at least kUniformEntropy
// and at most kUniformShare as far from 1 as at initialization. Untrained heads are nearly uniform, so no
// head is called uniform where its value at initialization is unknown.
inline constexpr double kUniformEntropy = 0.99;
inline constexpr double kUniformShare = 0.25;

enum class Verdict {
  shown,       // pattern and effect
  no_effect,   // pattern, but ablation has no measurable cost
  no_pattern,  // effect, but no pattern found
  not_enough,  // too few eligible queries
  none,        // neither pattern nor effect
};
std::string_view verdict_name(Verdict);

struct Label {
  std::string name;  // "mirror", "previous token", "offset -3", "position 0", ...; "" without a pattern
  Verdict verdict = Verdict::none;
  std::string sentence;  // the label with its evidence
};

// Labels a head from all its scores, with at_init where it is known, and its zero ablation. Ablation makes
// the model worse if the interval of the change in loss lies above 0, or that of the change in accuracy below
// 0.
Label label_head(std::span<const HeadScore> scores, const Effect& zero);

}  // namespace thimble
