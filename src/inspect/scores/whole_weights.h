// Attention weights as wholes, also where a model makes them for one position after the other.
#pragma once

#include <optional>
#include <span>

#include "thimble/data/dataset.h"
#include "thimble/model/model.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

class WholeWeights {
 public:
  struct Seen {
    std::size_t layer;  // number of the attention layer
    Shape shape;        // (B, heads, queries, keys)
    ConstMatrixView weights;
  };

  explicit WholeWeights(std::span<const AttentionLayer> layers) : layers_(layers) {}

  // Before a pass over the batch, all positions of it.
  void begin(const Batch& batch) { batch_ = &batch; }

  // For Hooks::observe. Returns the weights of a layer when its last position is there.
  std::optional<Seen> observe(Site site, const Shape& shape, ConstMatrixView value);

 private:
  std::span<const AttentionLayer> layers_;
  const Batch* batch_ = nullptr;
  Tensor gathered_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
