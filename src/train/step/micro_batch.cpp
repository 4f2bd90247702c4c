#include "train/step/micro_batch.h"

#include <algorithm>

namespace thimble {

namespace {

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::int64_t micro_batch(std::int64_t length) {
  return std::max<std::int64_t>(1, kMicroBatchTokens / length);
}

std::int64_t largest_shard(const TrainConfig& train) { return ceil_divide(train.batch, train.shards); }

std::int64_t micro_batches_of_shard(const TrainConfig& train, std::int64_t length) {
  return ceil_divide(largest_shard(train), micro_batch(length));
}

std::int64_t largest_micro_batch(const TrainConfig& train, std::int64_t length) {
  return ceil_divide(largest_shard(train), micro_batches_of_shard(train, length));
}

}  // namespace thimble
