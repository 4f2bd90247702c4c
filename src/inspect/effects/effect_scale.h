// The scale on which the effects of heads are judged; see EffectScale.
#pragma once

#include "thimble/inspect/effects.h"
#include "train/step/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The passes that measure the rounding error, and untrained models, of seeds that follow the config's.
inline constexpr int kRoundingPasses = 2, kUntrainedModels = 12;

// Measures the scale of the selected sequences, whose results without an intervention are `baseline`, in
// kRoundingPasses + kUntrainedModels passes, after bound_answers(). smallest_effect: a share of the way from chance to
// perfect. The model gets other weights for the time of the call.
EffectScale measure_scale(Evaluator& evaluator, const EvalResult& baseline, const AnswerBounds& bounds,
                          double smallest_effect);

// Returns hooks of a pass that measures the rounding error: they add or subtract one unit in the last place, at
// random, in every value that hooks can replace. `pass` draws other signs.
std::unique_ptr<ChunkHooks> rounding_hooks(std::uint64_t seed, std::uint32_t pass);

// Returns EffectScale::at_chance, which follows from the other members and the results of the model.
std::optional<bool> is_at_chance(const EffectScale& scale, const EvalResult& baseline);

// Caps the loss of the evaluator at the entropy of the selected labels, and returns the bounds of the change of an answer.
AnswerBounds bound_answers(Evaluator& evaluator);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
