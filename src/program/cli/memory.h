// Asks, before a command starts, whether its memory is there.
#pragma once

#include "train/step/cost.h"

namespace thimble::cli {

// Throws ConfigError with the parts and the keys to lower if the estimate exceeds available_memory() of its threads, a bound
// if it exceeds it twice over.
void require_fit(const MemoryEstimate& estimate);
void require_bound_fits(const MemoryEstimate& bound);

}  // namespace thimble::cli
