// What a pass of a config's model takes, counted by a planning tape that records the model itself: known
// before anything is allocated.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/autograd/op_cost.h"
#include "thimble/config/config.h"
#include "thimble/data/dataset.h"
#include "thimble/model/model_config.h"

namespace thimble {

struct PlanOptions {
  bool gradients = false;  // backward too, keeping the gradients of parameters alone
  bool dropout = false;    // the forward pass of training
  bool transposes = true;  // with the transposes of weights that a trainer keeps
  bool decoding = false;   // not the loss, but greedy decoding of the batch's sources
};

// Bytes are those of the config's precision.
struct ModelPlan {
  double parameters = 0;    // elements of all parameters
  double tape_bytes = 0;    // what the tape hands out
  double other_bytes = 0;   // what decoding keeps outside of it
  std::vector<OpCost> ops;  // the bytes add up to tape_bytes
};

ModelPlan plan_model(const Config&, const Batch&, const PlanOptions&);

// A batch of sequences that are all as long as can be, with a label at every position.
Batch full_batch(const Config&, std::int64_t sequences);

// Sizes of what the config's model reads. Throws DataError as model_length() does.
ModelSizes model_sizes(const Config&);

}  // namespace thimble
