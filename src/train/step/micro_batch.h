// How many sequences a thread computes at once.
#pragma once

#include <cstdint>

#include "thimble/train/config.h"

namespace thimble {

// With this many tokens the activations of one block of a small model fit a core's cache: of 128, 256 and 512,
// configs/bench/tiny.yaml is a sixth faster with 256 than with 512, and larger models are 1 % slower.
inline constexpr std::int64_t kMicroBatchTokens = 256;

// Returns how many sequences of `length` tokens a thread computes at once: as many as fit a core's cache, at
// least 1.
std::int64_t micro_batch(std::int64_t length);

// Returns the sequences of the largest shard of a step.
std::int64_t largest_shard(const TrainConfig&);

// Returns the number of micro-batches of a shard in training: the fewest of at most micro_batch(length) sequences.
std::int64_t micro_batches_of_shard(const TrainConfig&, std::int64_t length);

// Returns the sequences of the largest micro-batch of training, as those of a shard are as even as possible.
std::int64_t largest_micro_batch(const TrainConfig&, std::int64_t length);

}  // namespace thimble
