// Whether the order of its input means anything to a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/train/run.h"

namespace thimble {

// Logits of permuted sequences against those of the sequences, each at the place where its token went; a
// model with one output per sequence has them in one place. Without positions and without a mask a
// transformer treats all orders alike (Lee et al., "Set Transformer", 2019, property 1): 0 but for rounding.
struct PermutationReport {
  std::int64_t sequences = 0;
  double worst = 0;  // largest |difference| of two logits
  double logit = 0;  // largest |logit|
  double relative() const { return logit > 0 ? worst / logit : 0; }
};

// Indices 0 .. count-1 in an order that is uniform over all of them (Fisher and Yates), one for each number.
std::vector<std::size_t> random_order(std::size_t count, std::uint64_t number);

// On the first test sequences, sequence i in random_order(T, i) of the tokens that it has without padding.
// Throws CheckpointError when the weights do not fit the config.
PermutationReport measure_permutation(const ModelSource& source, std::int64_t sequences);

// {"sequences", "worst", "logit", "relative"}
Json to_json(const PermutationReport&);

}  // namespace thimble
