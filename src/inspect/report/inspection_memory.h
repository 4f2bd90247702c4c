// The memory of inspect(), estimated before anything is allocated; see train/cost.h.
#pragma once

#include "thimble/inspect/inspect.h"
#include "train/step/cost.h"

namespace thimble {

MemoryEstimate inspection_memory(const Config&, const InspectOptions& = {});

}  // namespace thimble
