// Scores of every head over evaluation passes.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "inspect/scores/whole_weights.h"
#include "thimble/inspect/scores/scores.h"
#include "thimble/train/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

class ScoreObserver : public ChunkHooks {
 public:
  explicit ScoreObserver(const Evaluator& evaluator);

  void begin(const Chunk& chunk) override;
  void observe(Site site, const Shape& shape, ConstMatrixView value) override;

  const std::vector<HeadScorer>& heads() const { return heads_; }  // by HeadId

 private:
  // Whether queries and keys are of the source. Layers with equal values share their targets.
  using Sequences = std::pair<bool, bool>;
  static Sequences sequences_of(const AttentionLayer& l) { return {l.queries_source, l.keys_source}; }
  ScoreTargets targets(const AttentionLayer&, const Batch&, std::int64_t sequence,
                       const std::vector<Dataset::Alignment>&) const;

  void add(const WholeWeights::LayerWeights&);

  const Evaluator& evaluator_;
  std::span<const AttentionLayer> layers_;
  std::vector<std::int32_t> special_;
  WholeWeights whole_;
  std::vector<HeadScorer> heads_;
  std::map<Sequences, std::vector<ScoreTargets>> targets_;  // of the chunk's sequences
  std::vector<double> weights_;                             // (queries, keys) of one head and sequence
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
