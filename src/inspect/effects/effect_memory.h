// The memory of measuring effects, estimated before anything is allocated; see train/cost.h.
#pragma once

#include "train/step/cost.h"

namespace thimble {

// Returns the memory of measure_effects() and measure_joint_effects() on the first test sequences, which ablations
// and patching stay below, and then of storing that many bytes beside the tapes.
MemoryEstimate effects_memory(const Config&, std::int64_t sequences, double stored = 0);

}  // namespace thimble
