// Interventions on heads, and what they change; effects.h says what is measured.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "thimble/inspect/effects/effects.h"
#include "thimble/train/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// What stands in for the head outputs of a sequence at a position: C values, or null for zeros.
using Substitute = std::function<const Real*(std::int64_t sequence, std::int64_t position)>;

// Replaces z_h of some heads, wherever they are, by the same columns of the substitute.
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

// For each sequence another one of the same length: those of a length are put into a random order, and each
// gets the next one. A sequence whose length no other has gets itself.
std::vector<std::int64_t> resampling_pairs(std::span<const std::int32_t> lengths, std::uint64_t seed);

// Everything in the report, at 1 + layers (1 + 4 heads) passes without gradients and one with them. What is
// drawn depends on the config's seed. Heads are removed by their normalized importance, the first of equals
// first. Memory: input and head outputs of one layer, twice (sequences, T, C) reals, and 6 doubles per head
// and sequence. Throws as Evaluator::run.
EffectsReport measure_effects(Evaluator& evaluator);

// The work of that, in passes over the whole model without gradients.
double effect_passes(const Evaluator& evaluator);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
