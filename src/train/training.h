// Training in one precision.
#pragma once

#include "thimble/core/real.h"
#include "thimble/train/train.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// train() of train.h, whose memory fits.
TrainResult run_training(const Config& config, const TrainOptions& options);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
