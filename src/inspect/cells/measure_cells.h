// The test of whether the cells of patterns carry the effects of heads, which cells.h defines.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "thimble/inspect/cells.h"
#include "thimble/inspect/score_targets.h"
#include "train/step/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Returns the cells of a pattern in a sequence.
std::vector<ScoreTargets::Cell> cells_of(const FoundPattern&, const ScoreTargets&,
                                         std::span<const std::string_view> kinds);

// Tests the pattern of each head whose ablation changes something: alone, and a backup without its group. Where the cells
// of another one are not shown to carry its effect, they are tested once more without the head without which it is worth
// most, if that is more than alone. nullopt for heads that are not tested: those without a pattern, and those that cost
// nothing. By HeadId, as `patterns`, of which each has its alternatives or none, and `verdicts`. Takes a pass without
// gradients for each layer, and three for each pattern from the block of the head on; a second test takes the same. Memory:
// input and head outputs of one layer, two tensors of (sequences, T, C).
std::vector<std::optional<CellEffect>> measure_cells(Evaluator& evaluator,
                                                     std::span<const std::vector<FoundPattern>> patterns,
                                                     std::span<const HeadVerdict> verdicts,
                                                     const EffectsReport& effects, const JointReport& joint);

// Returns what that costs, in passes over the whole model, if every head is tested once.
double cell_passes(const Evaluator& evaluator);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
