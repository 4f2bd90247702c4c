// How the rows of a training step are cut into micro-batches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "thimble/train/dataset.h"
#include "train/step/micro_batch.h"

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

  // Chooses the rows of a step, counted from 0, and orders them if they are sorted.
  void start(std::int64_t step);
  // Calls f for the micro-batches of a shard: as even as possible, or of rows that are dealt out, with as many as fit a
  // core's cache.
  template <class F>
  void of_shard(std::int64_t shard, const F& f) const;
  // Sets `out` to the rows of a micro-batch.
  void fill(const MicroBatch&, Batch& out) const;

 private:
  const Dataset& dataset_;
  std::int64_t batch_, shards_, step_ = 0;
  std::int64_t parts_;                      // of a shard, unless rows are dealt out
  std::vector<std::int64_t> rows_, drawn_;  // of the step, if they are sorted
};

template <class F>
void StepBatches::of_shard(std::int64_t shard, const F& f) const {
  const auto shard_begin = [&](std::int64_t i) { return batch_ * i / shards_; };
  const std::int64_t begin = shard_begin(shard), size = shard_begin(shard + 1) - begin;
  if (dataset_.source().step_order() == StepOrder::dealt) {
    for (std::int64_t first = 0, last = 0; first < size; first = last) {
      RowLengths shortest, longest;
      for (; last < size; ++last) {
        const RowLengths row = dataset_.row_lengths(rows_[static_cast<std::size_t>(begin + last)]);
        const RowLengths next = longest.with(row);
        if (last == first)
          shortest = row;
        else if (last - first >= micro_batch(next.total()) || row.total() > 2 * shortest.total())
          break;
        longest = next;
      }
      f(MicroBatch{shard, begin + first, last - first, last == size});
    }
    return;
  }
  const std::int64_t parts = std::min(parts_, size);
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t first = size * i / parts, end = size * (i + 1) / parts;
    f(MicroBatch{shard, begin + first, end - first, i + 1 == parts});
  }
}

}  // namespace thimble
