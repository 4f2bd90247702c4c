// Scores every head on the sequences of some passes.
#pragma once

#include <vector>

#include "thimble/inspect/scores.h"
#include "thimble/inspect/subject.h"

namespace thimble::inline THIMBLE_PRECISION {

class ScoreWatcher : public ChunkHooks {
 public:
  explicit ScoreWatcher(const Subject& subject);

  void begin(const Chunk& chunk) override;
  void observe(std::string_view site, const Shape& shape, ConstMatrixView weights) override;

  const std::vector<HeadScorer>& heads() const { return heads_; }  // by layer, then head

 private:
  const Subject& subject_;
  const std::vector<std::int32_t> special_;
  std::vector<HeadScorer> heads_;
  std::vector<ScoreTargets> targets_;  // of the chunk's sequences
  std::vector<double> weights_;        // (T, T), of one head and sequence
};

}  // namespace thimble::inline THIMBLE_PRECISION
