// How the rows of a training step are cut into micro-batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "thimble/train/config.h"
#include "thimble/train/dataset.h"

namespace thimble {

// Sequences of a step's batch.
struct MicroBatch {
  std::int64_t shard, first, count;
  bool is_last;  // of the shard
};

// The micro-batches of one step at a time.
class StepBatches {
 public:
  // The dataset must outlive this.
  StepBatches(const Dataset& dataset, const TrainConfig& train);

  // Chooses the rows of a step, counted from 0, orders them if they are sorted, and cuts them. Allocates nothing from the
  // third time on.
  void start(std::int64_t step);
  // Returns the micro-batches of a shard: as even as possible, or of rows that are dealt out, with as many as fit a core's
  // cache.
  std::span<const MicroBatch> of_shard(std::int64_t shard) const;
  // Sets `out` to the rows of a micro-batch.
  void fill(const MicroBatch&, Batch& out) const;

 private:
  std::int64_t shard_begin(std::int64_t shard) const;
  void cut_evenly(std::int64_t shard);
  void cut_by_length(std::int64_t shard);

  const Dataset& dataset_;
  std::int64_t batch_, shards_, step_ = 0;
  std::int64_t parts_;                      // of a shard, unless rows are dealt out
  std::vector<std::int64_t> rows_, drawn_;  // of the step, if they are sorted
  std::vector<MicroBatch> cut_;             // by shard
};

}  // namespace thimble
