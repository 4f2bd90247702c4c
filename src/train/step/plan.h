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

// What a planned pass includes.
struct PlanOptions {
  bool gradients = false;     // the backward pass, keeping only gradients of parameters
  bool dropout = false;       // dropout, as in training
  bool decoding = false;      // greedy decoding of the batch's sources, in place of the loss
  bool observed = false;      // by hooks, for which attention keeps its weights
  bool replaced = false;      // by hooks that replace every value but attention weights
  bool loss = true;           // the loss; false: only logits
  bool per_sequence = false;  // the loss of every sequence
  bool all = false;           // keeping the gradients of all values
};

// The cost of a pass; bytes are for the config's precision.
struct ModelPlan {
  double parameters = 0;    // elements of all parameters
  double packed_bytes = 0;  // of weights packed for products
  double tape_bytes = 0;    // allocated by the tape
  double other_bytes = 0;   // allocated by decoding outside of the tape
  std::vector<OpCost> ops;  // the bytes add up to tape_bytes
};

// Returns the cost of a pass over the batch; run_plan that of a pass in the precision R, whatever the config says.
ModelPlan plan_model(const OpenConfig&, const Batch&, const PlanOptions&);
template <class R>
ModelPlan run_plan(const OpenConfig&, const Batch&, const PlanOptions&);

// Returns the cost of a pass over `sequences` of the maximum length, with a label at every position.
ModelPlan plan_pass(const OpenConfig&, std::int64_t sequences, const PlanOptions&);

// Returns a batch of sequences of the maximum length, or of these lengths, with a label at every position.
Batch full_batch(const OpenConfig&, std::int64_t sequences);
Batch full_batch(const OpenConfig&, std::int64_t sequences, const RowLengths&);

}  // namespace thimble
