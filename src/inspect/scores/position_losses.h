// The loss at each position of a window of text.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/inspect/scores.h"
#include "train/step/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Sums the losses of the observed sequences, one output per position, by position.
class PositionLosses : public ChunkHooks {
 public:
  // `length`: of the longest sequence.
  PositionLosses(std::int64_t length, std::int64_t vocabulary)
      : sums_(static_cast<std::size_t>(length)), dlogits_({1, vocabulary}) {}

  void begin(const Chunk& chunk) override { batch_ = &chunk.batch; }
  bool may_replace(Site) const override { return false; }
  void observe(Site site, const Shape& shape, ConstMatrixView value) override;
  void end() override {}

  std::vector<PositionLoss> means() const;  // by position; NaN where there is no label

 private:
  std::vector<PositionLoss> sums_;
  Tensor dlogits_;  // of one row
  const Batch* batch_ = nullptr;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
