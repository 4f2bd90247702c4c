// What of a CircuitReport takes passes over sequences.
#pragma once

#include <optional>
#include <vector>

#include "thimble/inspect/circuits/attribution.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Attention rollout, see CircuitReport. The weights are distributions over the keys, so half of their mean
// and half of the identity is one too: the normalization of rows in the definition changes nothing.
class RolloutObserver : public ChunkHooks {
 public:
  explicit RolloutObserver(const Evaluator& evaluator);

  void begin(const Chunk& chunk) override { batch_ = &chunk.batch; }
  void observe(Site site, const Shape&, ConstMatrixView value) override;
  DoubleMatrix finish() const;

 private:
  void apply_layer(std::size_t layer, ConstMatrixView weights);
  Tensor mixed(ConstMatrixView weights, std::int64_t sequence) const;
  void add(const Tensor& rollout);

  std::span<const AttentionLayer> layers_;
  std::int64_t length_;
  const Batch* batch_ = nullptr;
  std::vector<Tensor> products_;  // by sequence
  DoubleMatrix sum_;
  std::int64_t count_ = 0;
};

// Rollout of an encoder, attribution where it is available.
class CircuitObserver : public ChunkHooks {
 public:
  explicit CircuitObserver(const Evaluator& evaluator);

  void begin(const Chunk& chunk) override;
  void observe(Site site, const Shape& shape, ConstMatrixView value) override;
  // After the passes. Throws as head_circuits does.
  CircuitReport finish() const;

 private:
  const Evaluator& evaluator_;
  std::optional<RolloutObserver> rollout_;
  std::optional<AttributionObserver> attribution_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
