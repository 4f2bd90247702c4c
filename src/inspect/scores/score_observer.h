// Scores of every head over evaluation passes.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "inspect/scores/whole_weights.h"
#include "thimble/inspect/scores.h"
#include "train/step/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

class ScoreObserver : public ChunkHooks {
 public:
  // Observes the selected sequences of the evaluator; same_positions of the scores is known if `compare`.
  explicit ScoreObserver(const Evaluator& evaluator, bool compare = false);

  void begin(const Chunk& chunk) override;
  bool may_replace(Site) const override { return false; }
  void observe(Site site, const Shape& shape, ConstMatrixView value) override;

  const std::vector<HeadScorer>& heads() const { return heads_; }  // by HeadId

  // Returns the targets of each sequence of the chunk that began last.
  const std::vector<ScoreTargets>& targets_of(const AttentionLayer& layer) const {
    return targets_.at(sequences_of(layer));
  }

  // Returns the scores of a head, with task targets by kind; with `like` as in HeadScorer::scores.
  std::vector<HeadScore> scores(std::size_t head, std::span<const HeadScore> like = {}) const {
    return heads_[head].scores(evaluator_.dataset().source().kinds(), like);
  }

 private:
  // Whether queries and keys are of the source, and whether only some queries count. Layers with equal values share their
  // targets.
  using Sequences = std::tuple<bool, bool, bool>;
  Sequences sequences_of(const AttentionLayer& l) const {
    return {l.queries_source, l.keys_source, is_last(l)};
  }
  // Returns whether outputs of the layer's heads reach the loss at their own positions alone.
  bool is_last(const AttentionLayer&) const;
  ScoreTargets targets(const AttentionLayer&, const Batch&, std::int64_t sequence,
                       ScoreTargets::TaskTargets) const;
  void set_targets(const Chunk&);
  void add(const WholeWeights::LayerWeights&);

  const Evaluator& evaluator_;
  std::span<const AttentionLayer> layers_;
  std::vector<std::int32_t> special_;
  WholeWeights whole_;
  std::vector<HeadScorer> heads_;
  std::map<Sequences, std::vector<ScoreTargets>> targets_;  // of the chunk's sequences
  std::map<Sequences, TargetCounts> counts_;                // of all sequences; empty: do not compare
  std::vector<double> weights_;                             // (queries, keys) of one head and sequence
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
