// Activation patching of heads, at all positions and at each; see PatchingReport.
#pragma once

#include <span>

#include "inspect/patching/pairs.h"
#include "thimble/inspect/patch.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Returns hooks that replace the output of one head, at all positions or at one, by that of other inputs, `donor` (B, T,
// H Dv). The layers and the donor must outlive them.
std::unique_ptr<Replace> patch_head(std::span<const AttentionLayer> layers, HeadId head, const Tensor& donor,
                                    std::optional<std::int64_t> position = {});

// Patches every head of the runner's model, at all positions and at each.
// Throws as patch_effects and PairRunner::differences do. The report has no tokens.
PatchingReport measure_patching(PairRunner& runner);

// Returns measure_patching, of a single pair with its tokens.
PatchingReport patching(Evaluator& evaluator, std::vector<PairBatch> pairs);
// Patches the pairs, of the evaluator's split. Throws as require_comparable.
PatchingReport patching(Evaluator& evaluator, std::span<const InputPair> pairs);

}  // namespace THIMBLE_PRECISION

// Jobs of patch.h in the precision R, float or double.
template <class R>
PatchingReport run_patching(const ModelSource& model, std::int64_t clean, std::int64_t corrupted);
template <class R>
PatchingReport run_patching_pairs(const ModelSource& model, const PairChoice& choice);
template <class R>
EdgesReport run_edges(const ModelSource& model, const PairChoice& choice);

}  // namespace thimble
