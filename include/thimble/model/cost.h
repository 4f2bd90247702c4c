// What a model costs, from its config alone: known before anything is allocated. Numbers are doubles, exact
// up to 2^53, so that no product of sizes overflows. T: length, tokens of a full sequence.
#pragma once

#include <cstdint>

#include "thimble/model/model_config.h"

namespace thimble {

// Elements of all parameters of make_model(config, sizes).
double parameter_count(const ModelConfig&, const ModelSizes&);

// Floating-point operations in matrix products. A multiply-add is 2; a causal mask and padding are counted
// in full; what is no matrix product (norms, softmax, additive scores, activations, embeddings, loss) is not
// counted.
struct Flops {
  double projections =
      0;                 // to queries, keys and values, and of the heads' output: 8 T C^2 a layer by default
  double attention = 0;  // scores and mixing: 2 T^2 H (Dk + Dv) a layer
  double feed_forward = 0;  // 4 T C F a layer, gated 6 T C F
  double output = 0;        // the output net
  double recurrent = 0;     // gates of GRUs

  double total() const { return projections + attention + feed_forward + output + recurrent; }
};

// Of one forward pass over `sequences` sequences.
Flops forward_flops(const ModelConfig&, const ModelSizes&, std::int64_t sequences);

// Of forward and backward, which is twice forward: a product y = x w has the two gradients dy w^T and x^T dy
// (Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1).
Flops training_flops(const ModelConfig&, const ModelSizes&, std::int64_t sequences);

// Numbers that a tape holds after a pass over `sequences` sequences, loss included, when it was given the
// weights' transposes: values, and for training also dropout factors and the gradients of values that
// backward(), keeping those of leaves, needs at once.
double activation_count(const ModelConfig&, const ModelSizes&, std::int64_t sequences, bool training);

// Numbers that greedy decoding of `sequences` sequences holds: what encoding leaves on its tape, and the keys
// and values that it keeps of sources and answers. 0 for a model that generates nothing.
double decoding_count(const ModelConfig&, const ModelSizes&, std::int64_t sequences);

}  // namespace thimble
