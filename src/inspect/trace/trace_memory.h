// The memory of forward passes over single sequences, estimated before anything is allocated; see train/cost.h.
#pragma once

#include "train/step/cost.h"

namespace thimble {

// Returns the bytes of the traces of the first test sequences, without logits.
double trace_bytes(const Config&, std::int64_t sequences);

// Returns the memory of trace_split(), which keeps the traces of a micro-batch.
MemoryEstimate trace_memory(const Config&, std::int64_t sequences);

// Returns the memory of generate() and trace_input(), which run the model on one sequence.
MemoryEstimate input_memory(const Config&, std::int64_t beams = 1);

}  // namespace thimble
