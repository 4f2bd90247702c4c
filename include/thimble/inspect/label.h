// Labels of heads: what a head attends to, more than chance and more than at initialization, together with
// the verdict on its effect.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thimble/inspect/patterns.h"
#include "thimble/inspect/scores.h"
#include "thimble/inspect/verdict.h"

namespace thimble {

// A head without a pattern of patterns.h is uniform when its normalized entropy is at least kUniformEntropy
// and at most kUniformShare as far from 1 as at initialization. Untrained heads are nearly uniform, so no
// head is called uniform where its value at initialization is unknown.
inline constexpr double kUniformEntropy = 0.99;
inline constexpr double kUniformShare = 0.25;

struct Label {
  std::string name;  // "mirror", "previous token", "offset -3", "position 0", ...; "" without a pattern
  Verdict verdict = Verdict::unused;
  std::string sentence;         // the label with its evidence
  std::vector<HeadId> group{};  // of a backup, the other heads of its group
};

// Labels a head from all its scores, with at_init where it is known, its zero ablation, and the verdict on its
// effects. A head that costs nothing is redundant if it has a pattern, and unused otherwise; no head has a
// label on too few queries, or in a model that is no better than chance.
Label label_head(std::span<const HeadScore> scores, const Effect& zero, const HeadVerdict& effects);

}  // namespace thimble
