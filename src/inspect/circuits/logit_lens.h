// The logit lens of a model; see lens_names.h.
#pragma once

#include <functional>
#include <vector>

#include "thimble/inspect/lens_names.h"
#include "train/step/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Calls visit(depth, logits) for the lens at each depth of a pass over the input; the tape must be bound to the
// model's parameters. None for a model without a lens.
void each_lens(const Model& model, Tape& tape, const ModelInput& input,
               const std::function<void(std::size_t depth, Var logits)>& visit);

// Returns the loss and the accuracy of the lens at each depth on the selected sequences, in lens_passes()
// passes. `whole` is the evaluator's result for the model itself. Memory: one tensor of (sequences, T, C).
std::vector<LensResult> logit_lens(Evaluator& evaluator, const EvalResult& whole);
double lens_passes(const Evaluator& evaluator);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
