// The cost of ops, as a planning tape counts it (Tape::Mode::plan).
#pragma once

#include <cstdint>
#include <string>

namespace thimble {

// Floating-point operations in matrix products; a multiply-add is 2. Softmax, norms, activations, additive
// scores, embeddings and losses are not counted. Masked and padded elements are, if they are computed.
struct Flops {
  double forward = 0, backward = 0;

  double total() const { return forward + backward; }
};

// The total cost of the calls of an op in a layer.
struct OpCost {
  std::string layer, op;
  std::int64_t calls = 0;
  double bytes = 0;  // of its values, of what it saves for backward, and of gradients that its backward adds
  double traffic = 0;  // bytes that both passes at least read and write: each operand and result once
  Flops flops;
};

}  // namespace thimble
