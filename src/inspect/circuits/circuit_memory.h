// The memory of CircuitObserver, estimated before anything is allocated.
#pragma once

#include "thimble/train/config.h"

namespace thimble {

// Returns the most bytes of the circuits, direct logit attribution and attention rollout, `at_once` sequences in a
// micro-batch.
double circuit_memory(const Config&, double at_once);

}  // namespace thimble
