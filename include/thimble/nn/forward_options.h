// What one forward pass is for.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/autograd/hooks.h"
#include "thimble/kernels/dropout.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

struct ForwardOptions {
  bool training = false;  // dropout is on
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t first_sample = 0;  // of this batch within the step's
  Hooks* hooks = nullptr;

  kernels::DropoutKey dropout_key(std::uint32_t site) const {
    return {Random(seed, Stream::dropout), step, first_sample, site};
  }
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
