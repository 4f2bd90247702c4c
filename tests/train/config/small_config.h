// Experiments that take milliseconds.
#pragma once

#include <vector>

#include "thimble/engine/real.h"
#include "thimble/train/config.h"

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

// An encoder-decoder, of which no two sizes are the same, that writes sequences of 2 to 4 tokens backwards.
inline thimble::Config writing_config() {
  thimble::Config config = small_config();
  config.task = {.name = "reverse", .symbols = 5, .length = 4, .min_length = 2};
  config.model.kind = thimble::ModelKind::encoder_decoder;
  config.model.output = {.per = thimble::OutputPer::next};
  return config;
}

// The same of a recurrent model.
inline thimble::Config recurrent_config(thimble::Score score) {
  thimble::Config config = writing_config();
  const thimble::ModelConfig defaults;
  config.model.kind = thimble::ModelKind::recurrent;
  config.model.heads = defaults.heads;
  config.model.d_ff = defaults.d_ff;
  config.model.attention.score = score;
  return config;
}

// Models whose heads share keys, have values of another width than keys, are summed, have one projection for queries
// and keys, or none and no softmax.
inline std::vector<thimble::Config> configs_of_heads(const thimble::Config& base) {
  std::vector<thimble::Config> configs(4, base);
  thimble::ModelConfig *grouped = &configs[0].model, *uneven = &configs[1].model, *tied = &configs[2].model,
                       *unprojected = &configs[3].model;
  grouped->heads = 4;
  grouped->attention.kv_heads = 2;
  uneven->heads = 3;
  uneven->attention.d_key = 6;
  uneven->attention.d_value = 7;
  uneven->attention.in_proj_std = 0.2;
  uneven->attention.combine = thimble::Combine::sum;
  tied->attention.tie_query_key = true;
  tied->attention.score = thimble::Score::dot;
  tied->attention.d_value = 12;
  unprojected->attention.in_proj = false;
  unprojected->attention.score = thimble::Score::linear;
  return configs;
}

// Models that score keys, know positions, normalize or feed forward in other ways.
inline std::vector<thimble::Config> configs_of_parts(const thimble::Config& base) {
  using namespace thimble;
  std::vector<Config> configs(6, base);
  configs[0].model.attention.score = Score::general;
  configs[1].model.attention.score = Score::additive;
  configs[1].model.attention.kv_heads = 1;
  configs[2].model.positions = Positions::rotary;
  configs[2].model.attention.rotary = {.layout = RotaryPairs::halves, .base = 500};
  configs[2].model.attention.tie_query_key = true;
  configs[3].model.positions = Positions::alibi;
  configs[3].model.attention.score = Score::additive;
  configs[4].model.norm_type = NormType::rms;
  configs[4].model.norm_epsilon = 0.1;
  configs[4].model.activation = Activation::silu;
  configs[4].model.gated = true;
  configs[5].model.d_ff = 0;
  return configs;
}

// Encoders without biases or weights of norms, with a norm after the embedding, none before the output, or an output that
// is the embedding, as language models have them.
inline std::vector<thimble::Config> configs_of_language_models(const thimble::Config& base) {
  using namespace thimble;
  std::vector<Config> configs(3, base);
  ModelConfig *bare = &configs[0].model, *tied = &configs[1].model, *plain = &configs[2].model;
  bare->norm_type = NormType::rms;
  bare->norm_weight = bare->bias = bare->norm_final = false;
  bare->norm_embedding = true;
  tied->bias = false;
  tied->output.tied = true;
  tied->init_std = 0.2;
  tied->init_scaled = true;
  plain->norm_weight = plain->norm_final = false;
  plain->norm_embedding = true;
  plain->output.tied = true;
  return configs;
}

// A model with a convolution in place of attention.
inline thimble::Config convolution_config(thimble::Config config) {
  config.model.mixer = thimble::Mixer::convolution;
  config.model.window = 5;
  config.model.heads = 1;
  config.model.attention.dropout = 0;
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
