// A test of whether a model depends on the order of its input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "thimble/train/json.h"

namespace thimble {

struct ModelSource;

// The difference between the logits of permuted sequences and the permuted logits of the sequences; a model
// with one output per sequence has logits in one place. A transformer without positions and mask is
// permutation equivariant (Lee et al., "Set Transformer", 2019, property 1): 0 up to rounding.
struct PermutationReport {
  std::int64_t sequences = 0;
  double worst = 0;  // largest |difference| of two logits
  double logit = 0;  // largest |logit|
  double relative() const { return logit > 0 ? worst / logit : 0; }
};

// Returns a uniformly random permutation of 0 .. count-1 (Fisher and Yates), a function of `number`.
std::vector<std::size_t> random_order(std::size_t count, std::uint64_t number);

// Measures the first test sequences, sequence i permuted by random_order(T, i) without its padding. Throws
// CheckpointError when the weights do not match the config.
PermutationReport measure_permutation(const ModelSource& model, std::int64_t sequences);

// Returns {"sequences", "worst", "logit", "relative"}
Json to_json(const PermutationReport&);

}  // namespace thimble
