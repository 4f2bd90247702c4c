#include "train/step/step_batches.h"

#include <algorithm>

#include "train/step/micro_batch.h"

namespace thimble {

StepBatches::StepBatches(const Dataset& dataset, const TrainConfig& train)
    : dataset_(dataset),
      batch_(train.batch),
      shards_(train.shards),
      parts_(micro_batches_of_shard(train, dataset.length() + dataset.source_length())) {
  cut_.reserve(static_cast<std::size_t>(batch_));
}

void StepBatches::start(std::int64_t step) {
  step_ = step;
  const StepOrder order = dataset_.source().step_order();
  if (order != StepOrder::drawn) dataset_.sorted_rows(step, batch_, shards_, rows_, drawn_);
  cut_.clear();
  for (std::int64_t shard = 0; shard < shards_; ++shard)
    order == StepOrder::dealt ? cut_by_length(shard) : cut_evenly(shard);
}

std::int64_t StepBatches::shard_begin(std::int64_t shard) const { return batch_ * shard / shards_; }

void StepBatches::cut_evenly(std::int64_t shard) {
  const std::int64_t begin = shard_begin(shard), size = shard_begin(shard + 1) - begin;
  const std::int64_t parts = std::min(parts_, size);
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t first = size * i / parts, end = size * (i + 1) / parts;
    cut_.push_back({shard, begin + first, end - first, i + 1 == parts});
  }
}

void StepBatches::cut_by_length(std::int64_t shard) {
  const std::int64_t end = shard_begin(shard + 1);
  for (std::int64_t first = shard_begin(shard), last = first; first < end; first = last) {
    RowLengths shortest, longest;
    for (; last < end; ++last) {
      const RowLengths row = dataset_.row_lengths(rows_[static_cast<std::size_t>(last)]);
      const RowLengths next = longest.with(row);
      if (last == first)
        shortest = row;
      else if (last - first >= micro_batch(next.total()) || row.total() > 2 * shortest.total())
        break;
      longest = next;
    }
    cut_.push_back({shard, first, last - first, last == end});
  }
}

std::span<const MicroBatch> StepBatches::of_shard(std::int64_t shard) const {
  const auto [first, last] = std::ranges::equal_range(cut_, shard, {}, &MicroBatch::shard);
  return {first, last};
}

void StepBatches::fill(const MicroBatch& batch, Batch& out) const {
  if (rows_.empty()) return dataset_.fill_step(step_, batch_, batch.first, batch.count, out);
  const auto rows =
      std::span(rows_).subspan(static_cast<std::size_t>(batch.first), static_cast<std::size_t>(batch.count));
  dataset_.fill(Split::train, rows, out, true);
}

}  // namespace thimble
