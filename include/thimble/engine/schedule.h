// Learning-rate schedules.
#pragma once

#include <cstdint>

#include "thimble/engine/optim_config.h"

namespace thimble {

// Returns the factor of the base learning rate lr in step t = 0, 1, ..., steps - 1; w is the warm-up, in
// steps, u = (t - w) / (steps - w) the share of the rest, f = final / lr:
//   constant      1
//   linear        1 until w, then f + (1 - f) (1 - u)
//   cosine        (1 + cos(pi t / steps)) / 2                    Loshchilov and Hutter 2017, one period
//   cosine_decay  1 until w, then f + (1 - f) (1 + cos(pi u)) / 2
//   inverse_sqrt  1 until w, then sqrt(max(w, 1) / t)            Vaswani et al. 2017, section 5.3, peak of 1
// each times min(1, t / w), so that cosine with a warm-up is always below 1. As in PyTorch's LambdaLR, a
// warm-up starts from 0.
double schedule_factor(const ScheduleConfig& schedule, double lr, std::int64_t t, std::int64_t steps);

}  // namespace thimble
