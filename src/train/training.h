// Training in one precision.
#pragma once

#include "thimble/core/real.h"
#include "thimble/train/train.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Does what train() of train.h does, without checking memory.
TrainResult run_training(const Config& config, const TrainOptions& options);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
