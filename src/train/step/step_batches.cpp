#include "train/step/step_batches.h"

#include <span>

namespace thimble {

StepBatches::StepBatches(const Dataset& dataset, const TrainConfig& train)
    : dataset_(dataset),
      batch_(train.batch),
      shards_(train.shards),
      parts_(micro_batches_of_shard(train, dataset.length() + dataset.source_length())) {}

void StepBatches::start(std::int64_t step) {
  step_ = step;
  if (dataset_.source().step_order() != StepOrder::drawn)
    dataset_.sorted_rows(step, batch_, shards_, rows_, drawn_);
}

void StepBatches::fill(const MicroBatch& batch, Batch& out) const {
  if (rows_.empty()) return dataset_.fill_step(step_, batch_, batch.first, batch.count, out);
  const auto rows =
      std::span(rows_).subspan(static_cast<std::size_t>(batch.first), static_cast<std::size_t>(batch.count));
  dataset_.fill(Split::train, rows, out, true);
}

}  // namespace thimble
