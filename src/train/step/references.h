// The losses of n-gram models on the tokens that a language model predicts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "thimble/train/config.h"
#include "thimble/train/dataset.h"
#include "thimble/train/results.h"
#include "train/data/corpus/ngram.h"

namespace thimble {

class ReferenceModels {
 public:
  static constexpr std::int64_t kMaxCounted = 2'500'000;  // training tokens

  // Counts the text of the training split, or its start. For a task without a text, there are no models.
  explicit ReferenceModels(const Dataset&);

  // Returns the losses on the first `count` sequences of a split, with the context that each token has in its
  // sequence; none without models.
  std::optional<References> losses(Split, std::int64_t count) const;

 private:
  const Dataset& data_;
  std::int64_t counted_ = 0, of_ = 0;
  std::vector<NgramModel> models_;
};

}  // namespace thimble
