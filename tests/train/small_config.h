// Experiments that take milliseconds.
#pragma once

#include "thimble/config/config.h"
#include "thimble/core/real.h"

// A post-norm model of one layer that reverses four tokens, in the precision of this test program.
inline thimble::Config small_config() {
  thimble::Config config;
  config.task = {.name = "reverse", .symbols = 6, .length = 4};
  config.data = {.train = 600, .validation = 40, .test = 60};
  config.model.d_model = 16;
  config.model.heads = 2;
  config.model.d_ff = 24;
  config.model.output.hidden = 12;
  config.train.steps = 20;
  config.train.batch = 24;
  config.train.threads = 1;
  config.train.precision =
      sizeof(thimble::Real) == 8 ? thimble::Precision::float64 : thimble::Precision::float32;
  config.train.optimizer.lr = 3e-3;
  return config;
}

// Everything at once: two pre-norm layers, GELU, a causal mask, dropout, sequences of different lengths,
// fresh data, AdamW.
inline thimble::Config rich_config() {
  thimble::Config config = small_config();
  config.task = {.name = "copy", .symbols = 6, .length = 7, .min_length = 3};
  config.data.train = 0;
  config.model.layers = 2;
  config.model.norm = thimble::NormOrder::pre;
  config.model.activation = thimble::Activation::gelu;
  config.model.positions = thimble::Positions::learned;
  config.model.attention = {.mask = thimble::Mask::causal, .dropout = 0.1};
  config.model.dropout = 0.1;
  config.model.output.hidden = 0;
  config.train.optimizer.name = thimble::OptimizerKind::adamw;
  config.train.optimizer.weight_decay = 0.05;
  config.train.schedule = {.name = thimble::ScheduleKind::cosine, .warmup = 3};
  config.train.clip_norm = 1;
  config.train.label_smoothing = 0.1;
  return config;
}
