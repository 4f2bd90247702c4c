// Random models with random input, for the architecture fuzzer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "thimble/train/batch.h"
#include "thimble/train/config.h"

namespace thimble {

// A model and a batch, both a pure function of a seed.
struct Architecture {
  std::uint64_t seed = 0;
  Config config;     // that the rules of configs accept
  ModelSizes sizes;  // of the model's input
  // Any tokens, lengths and labels, and any tokens in the padding, which data sets fill with 0.
  Batch batch;
};

Architecture random_architecture(std::uint64_t seed);

// Returns the config as YAML, and the batch in comments.
std::string describe(const Architecture&);

// Whether numerical gradients are compared: those of few tokens and parameters, and of a tenth of the larger models.
bool has_numerical_gradients(const Architecture&, std::int64_t parameters);

// Numbers by the name of their parameter, in double for both precisions.
using NamedValues = std::map<std::string, std::vector<double>>;

// The numbers of one pass.
struct PassResult {
  double loss = 0;
  NamedValues gradients;
};

// What a pass may differ in.
struct PassOptions {
  bool training = true;   // with dropout
  bool observed = false;  // with hooks that read the attention weights
};

}  // namespace thimble
