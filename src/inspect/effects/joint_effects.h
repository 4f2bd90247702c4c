// Ablation of several heads together.
#pragma once

#include "thimble/inspect/verdict.h"
#include "train/step/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Pairs cost at most about kPairPasses passes over all analyzed sequences, greedy removal kJointPasses, and the search for
// larger groups as much again. With more heads, pairs are measured on fewer sequences, and so are larger sets, but on at
// least kMinJointSequences. The search measures at most kMaxGroups sets.
inline constexpr double kPairPasses = 250, kJointPasses = 30;
inline constexpr std::int64_t kMinJointSequences = 100;
inline constexpr std::size_t kMaxGroups = 500;

// Measures zero ablation of sets of heads: all pairs, larger groups of those that cost nothing alone, and the greedy order
// of removal. In a model that is no better than chance, only the order of removal.
// Selects fewer sequences for the time of the call.
JointReport measure_joint_effects(Evaluator& evaluator, const EffectsReport& effects);

// Returns the cost of measure_joint_effects in passes without gradients, without larger groups; an upper bound.
double joint_passes(const Evaluator& evaluator);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
