// The memory of ScoreObserver, estimated before anything is allocated.
#pragma once

#include "thimble/config/config.h"

namespace thimble {

// Returns the bytes of the scores of heads, with those of varied examples and of the model before training, on
// that many sequences, `at_once` in a micro-batch.
double score_memory(const Config&, double sequences, double at_once);

}  // namespace thimble
