// The memory of inspect(), estimated before anything is allocated; see train/cost.h.
#pragma once

#include "thimble/inspect/report/inspect.h"
#include "thimble/train/cost.h"

namespace thimble {

MemoryEstimate inspection_memory(const Config&, const InspectOptions& = {});

}  // namespace thimble
