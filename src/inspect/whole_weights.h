// Attention weights as wholes, also where a model makes them for one position after the other.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/data/dataset.h"
#include "thimble/model/model.h"

namespace thimble::inline THIMBLE_PRECISION {

class WholeWeights {
 public:
  struct Seen {
    std::size_t place;  // which of the attentions
    Shape shape;        // (B, heads, queries, keys)
    ConstMatrixView weights;
  };

  explicit WholeWeights(std::vector<AttentionPlace> attentions) : attentions_(std::move(attentions)) {}

  // Before a pass over the batch, all positions of it.
  void begin(const Batch& batch) { batch_ = &batch; }

  // What Hooks::observe is told: gives the weights of a place when its last position is there.
  std::optional<Seen> observe(std::string_view site, const Shape& shape, ConstMatrixView value);

 private:
  std::vector<AttentionPlace> attentions_;
  const Batch* batch_ = nullptr;
  Tensor gathered_;
};

}  // namespace thimble::inline THIMBLE_PRECISION
