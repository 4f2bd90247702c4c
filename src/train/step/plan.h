// Plans passes of a config's model, before anything is allocated, with a planning tape that records the model
// itself.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/engine/model_config.h"
#include "thimble/engine/op_cost.h"
#include "thimble/train/config.h"
#include "thimble/train/dataset.h"

namespace thimble {

// What is planned: a pass with dropout and the gradients of parameters; a pass with its loss; greedy decoding of the
// batch's sources; a pass whose hooks observe every value, for which attention keeps its weights.
enum class PlannedPass { training, inference, decoding, observed };

// The cost of a pass; bytes are for the config's precision.
struct ModelPlan {
  double parameters = 0;    // elements of all parameters
  double packed_bytes = 0;  // of weights packed for products
  double tape_bytes = 0;    // allocated by the tape
  double other_bytes = 0;   // allocated by decoding outside of the tape
  std::vector<OpCost> ops;  // the bytes add up to tape_bytes
};

// Returns the cost of a pass over the batch; run_plan that of a pass in the precision R, whatever the config says.
ModelPlan plan_model(const OpenConfig&, const Batch&, PlannedPass);
template <class R>
ModelPlan run_plan(const OpenConfig&, const Batch&, PlannedPass);

// Returns the cost of a pass over `sequences` of the maximum length, with a label at every position.
ModelPlan plan_pass(const OpenConfig&, std::int64_t sequences, PlannedPass);

// Returns a batch of sequences of the maximum length, or of these lengths, with a label at every position.
Batch full_batch(const OpenConfig&, std::int64_t sequences);
Batch full_batch(const OpenConfig&, std::int64_t sequences, const RowLengths&);

}  // namespace thimble
