// Passes of random models in the precision of the including source. A program that needs both declares them in f32 and
// f64.
#pragma once

#include <string>
#include <vector>

#include "fuzz/architecture.h"
#include "thimble/engine/gradcheck_result.h"
#include "thimble/engine/model.h"
#include "thimble/engine/tape.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The architecture's model with these parameters.
std::unique_ptr<Model> make_model(const Architecture&, const NamedValues& parameters);

// Records the mean loss of the model over the labels of a batch.
Var record_loss(Tape&, const Model&, const Architecture&, const Batch&, const PassOptions&);

// Returns random parameters, biases and norm weights too; those of f32 are exact in both precisions.
NamedValues draw_parameters(const Architecture&);

// Returns the numbers of a pass over the batch.
PassResult run_pass(const Architecture&, const NamedValues& parameters, const PassOptions&);

// Compares the gradient of every parameter with numerical ones.
std::vector<GradcheckResult> check_gradients(const Architecture&, const NamedValues& parameters);

// Returns a sentence for each invariant that does not hold.
std::vector<std::string> broken_invariants(const Architecture&, const NamedValues& parameters);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
