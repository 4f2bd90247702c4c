// The parts of a CircuitReport that need passes over sequences.
#pragma once

#include <optional>
#include <vector>

#include "inspect/circuits/attribution.h"
#include "thimble/inspect/position_means.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Attention rollout, see CircuitReport. Rows of the weights sum to 1, and so do those of half their mean plus
// half the identity: the row normalization of the definition changes nothing.
class RolloutObserver : public ChunkHooks {
 public:
  explicit RolloutObserver(const Evaluator& evaluator);

  void begin(const Chunk& chunk) override { batch_ = &chunk.batch; }
  void observe(Site site, const Shape&, ConstMatrixView value) override;
  PositionMeans finish() const { return sum_.means(); }

 private:
  void apply_layer(std::size_t layer, ConstMatrixView weights);
  Tensor layer_step(ConstMatrixView weights, std::int64_t sequence, std::int64_t length) const;

  std::span<const AttentionLayer> layers_;
  std::int64_t length_;
  const Batch* batch_ = nullptr;
  std::vector<Tensor> products_;  // by sequence
  PositionSums sum_;
};

// Rollout of an encoder-only model, and attribution where it is available.
class CircuitObserver : public ChunkHooks {
 public:
  explicit CircuitObserver(const Evaluator& evaluator);

  void begin(const Chunk& chunk) override;
  bool may_replace(Site) const override { return false; }
  void observe(Site site, const Shape& shape, ConstMatrixView value) override;
  // Returns the report after the passes. Throws as head_circuits does.
  CircuitReport finish() const;

 private:
  const Evaluator& evaluator_;
  std::optional<RolloutObserver> rollout_;
  std::optional<AttributionObserver> attribution_;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
