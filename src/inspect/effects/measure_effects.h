// Interventions on heads and their effects, which effects.h defines.
#pragma once

#include <cstdint>
#include <span>

#include "inspect/effects/replace_heads.h"
#include "thimble/inspect/effects.h"
#include "train/step/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Returns for each sequence another one of the same length: sequences of a length are shuffled, and each gets
// the next one. A sequence of unique length gets itself.
std::vector<std::int64_t> resampling_pairs(std::span<const std::int32_t> lengths, std::uint64_t seed);

// Returns the means (T, columns) of rows (sequences, T, columns), over the sequences that have the position.
Tensor position_means(const Tensor& all, std::span<const std::int32_t> lengths);

// Measures all effects, in 15 + layers (1 + 4 heads) passes without gradients and one with gradients. Random
// draws depend on the config's seed. Cumulative ablation is in order of increasing normalized importance; of
// equal heads the first goes first. smallest_effect is a share of the way from chance to perfect, see
// EffectScale. Caps the loss, see bound_answers(). Memory: input and head outputs of one layer, two tensors of (sequences, T, C). Throws as
// Evaluator::run does.
EffectsReport measure_effects(Evaluator& evaluator, double smallest_effect = kSmallestEffect);

// Returns the results of removing heads one after the other, in this order, after that of the whole model.
std::vector<RemovalStep> removal_steps(Evaluator& evaluator, std::span<const HeadId> order,
                                       const EvalResult& baseline);

// Measures the ablation of a set of heads together. Memory: head outputs of the layers of the set.
AblationReport measure_ablation(Evaluator& evaluator, std::span<const HeadId> heads);

// Returns the cost of measure_effects in passes over the whole model without gradients.
double effect_passes(const Evaluator& evaluator);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
