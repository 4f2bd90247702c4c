// The memory of ScoreObserver, estimated before anything is allocated.
#pragma once

#include "thimble/train/config.h"

namespace thimble {

// Returns the bytes of the scores of heads, with those of varied examples and of the model before training, on
// that many sequences, `at_once` in a micro-batch.
double score_memory(const Config&, double sequences, double at_once);

// Returns 2 where sequences differ in length, so that means are also taken with positions from the end, else 1.
double alignments(const Config&);

}  // namespace thimble
