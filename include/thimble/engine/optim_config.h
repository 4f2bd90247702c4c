// The config of optimizer and learning-rate schedule. Plain values; the config room parses and checks them.
#pragma once

#include <cstdint>

namespace thimble {

enum class OptimizerKind { adam, adamw, sgd };
enum class ScheduleKind { constant, linear, cosine, inverse_sqrt, cosine_decay };

// The config of an optimizer.
struct OptimizerConfig {
  OptimizerKind name = OptimizerKind::adam;
  double lr = 1e-3;
  double beta1 = 0.9;       // adam, adamw
  double beta2 = 0.999;     // adam, adamw
  double epsilon = 1e-8;    // adam, adamw
  double momentum = 0.9;    // sgd
  double weight_decay = 0;  // of matrices only: decoupled in adamw, added to the gradient in adam and sgd
};

// The config of a learning-rate schedule, see schedule_factor().
struct ScheduleConfig {
  ScheduleKind name = ScheduleKind::constant;
  std::int64_t warmup = 0;  // steps
  double final = 0;         // linear, cosine_decay: the learning rate at the end
};

}  // namespace thimble
