// The heads of a run at its kept checkpoints, for train.checkpoint_series.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/inspect/forward_trace.h"
#include "thimble/inspect/timeline.h"

namespace thimble {

struct ModelSource;

// A model at one step of its training: loss and scores, without chance levels, on the first kLoggedSequences
// test sequences, and all attention on the first examples of them.
struct SeriesStep {
  HeadSnapshot snapshot;
  std::vector<ForwardTrace> examples;
};

// Returns the model at initialization (step 0) and at each checkpoint of its run, in order of the steps; empty
// without a run or train.checkpoint_series. `examples` of the sequences are kept. Adds a remark for each checkpoint that
// is left out. Throws as trace_split.
std::vector<SeriesStep> read_checkpoint_series(const ModelSource& model, std::int64_t examples,
                                               std::vector<std::string>& remarks);

}  // namespace thimble
