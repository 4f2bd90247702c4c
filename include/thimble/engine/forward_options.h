// The options of a forward pass.
#pragma once

#include <cstdint>
#include <span>

#include "thimble/engine/dropout_key.h"
#include "thimble/engine/hooks.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The options of a forward pass: dropout, whose masks depend on seed, step and sample, and hooks.
struct ForwardOptions {
  bool training = false;  // applies dropout
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
