// Attention weights of whole layers, gathered where a model computes them position by position.
#pragma once

#include <optional>
#include <span>

#include "thimble/engine/model.h"
#include "thimble/train/dataset.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

class WholeWeights {
 public:
  struct LayerWeights {
    std::size_t layer;  // index of the attention layer
    Shape shape;        // (B, heads, queries, keys)
    ConstMatrixView weights;
  };

  explicit WholeWeights(std::span<const AttentionLayer> layers) : layers_(layers) {}

  // Called before a pass over all positions of the batch.
  void begin(const Batch& batch) { batch_ = &batch; }

  // Called from Hooks::observe. Returns the weights of a layer with its last position, nullopt before.
  std::optional<LayerWeights> observe(Site site, const Shape& shape, ConstMatrixView value);

 private:
  std::span<const AttentionLayer> layers_;
  const Batch* batch_ = nullptr;
  Tensor gathered_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
