// What the attention heads of a trained model do, seen on test sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/inspect/scores.h"
#include "thimble/train/run.h"

namespace thimble {

struct HeadReport {
  std::int64_t layer = 0, head = 0;
  std::vector<double> mean_weights;  // (T, T): of query i on key j, averaged over sequences of full length
  HeadScore mirror;                  // weight on key n - 1 - i, n the sequence's length
  HeadScore task_target;             // weight on the keys that the task names, see Dataset::links
};

struct InspectReport {
  std::int64_t length = 0;     // T
  std::int64_t sequences = 0;  // looked at
  std::vector<HeadReport> heads;
};

// Runs the model, in evaluation mode, on the first `sequences` test sequences and watches its attention
// weights: after the mask and the softmax, in every layer. Throws CheckpointError when the weights do not fit
// the config.
InspectReport inspect(const ModelSource& source, std::int64_t sequences);

nlohmann::ordered_json to_json(const InspectReport&);

}  // namespace thimble
