// Interventions on heads and their effects, which effects.h defines.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "thimble/inspect/effects/effects.h"
#include "thimble/train/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Returns the replacement of the head outputs of a sequence at a position: H Dv values, or null for zeros.
using Substitute = std::function<const Real*(std::int64_t sequence, std::int64_t position)>;

// Replaces z_h of some heads, at all positions, by the same columns of the substitute.
class Ablation : public ChunkHooks {
 public:
  Ablation(std::span<const AttentionLayer> layers, std::span<const HeadId> heads,
           const Substitute& substitute)
      : layers_(layers), heads_(heads), substitute_(substitute) {}

  void begin(const Chunk& chunk) override { first_ = chunk.first; }
  bool replace(Site site, const Shape& shape, MatrixView value) override;

 private:
  std::span<const AttentionLayer> layers_;
  std::span<const HeadId> heads_;
  const Substitute& substitute_;
  std::int64_t first_ = 0;
};

// Returns for each sequence another one of the same length: sequences of a length are shuffled, and each gets
// the next one. A sequence of unique length gets itself.
std::vector<std::int64_t> resampling_pairs(std::span<const std::int32_t> lengths, std::uint64_t seed);

// Measures all effects, in 1 + layers (1 + 4 heads) passes without gradients and one with gradients. Random
// draws depend on the config's seed. Cumulative ablation is in order of increasing normalized importance; of
// equal heads the first goes first. Memory: input and head outputs of one layer, two tensors of (sequences,
// T, C), and 6 doubles per head and sequence. Throws as Evaluator::run does.
EffectsReport measure_effects(Evaluator& evaluator);

// Returns the cost of measure_effects in passes over the whole model without gradients.
double effect_passes(const Evaluator& evaluator);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
