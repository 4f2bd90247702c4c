// What a dropout mask is drawn from.
#pragma once

#include <cstdint>

#include "thimble/engine/random.h"
#include "thimble/engine/real.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// The key of a dropout mask. A mask is a pure function of the key and the position of an element within its
// sample, so that shards, threads and micro-batches cannot change a draw.
struct DropoutKey {
  Random random;
  std::uint32_t step = 0;
  std::uint32_t first_sample = 0;  // of this batch within the step's
  std::uint32_t site = 0;          // number of the dropout in the model, < 2^24
};

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
