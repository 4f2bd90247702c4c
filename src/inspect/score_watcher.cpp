#include "inspect/score_watcher.h"

#include <algorithm>

namespace thimble::inline THIMBLE_PRECISION {

ScoreWatcher::ScoreWatcher(const Subject& subject)
    : subject_(subject), special_(special_tokens(subject.config().task)) {
  const ModelConfig& model = subject.model().config();
  const std::int64_t length = subject.dataset().length();
  heads_.assign(static_cast<std::size_t>(model.layers * model.heads),
                HeadScorer(length, model.attention.mask == Mask::causal));
  weights_.resize(static_cast<std::size_t>(length * length));
}

void ScoreWatcher::begin(const Chunk& chunk) {
  const Batch& batch = chunk.batch;
  const bool causal = subject_.model().config().attention.mask == Mask::causal;
  Example example;
  targets_.clear();
  for (std::int64_t b = 0; b < batch.sequences; ++b) {
    subject_.dataset().example(subject_.split(), chunk.first + b, example);
    const std::span<const std::int32_t> tokens(batch.tokens.data() + b * batch.length,
                                               static_cast<std::size_t>(batch.lengths[b]));
    targets_.emplace_back(tokens, causal, subject_.dataset().links(example), special_);
  }
}

void ScoreWatcher::observe(std::string_view site, const Shape& shape, ConstMatrixView weights) {
  const std::vector<AttentionPlace>& all = subject_.attentions();
  const auto place =
      std::ranges::find_if(all, [&](const AttentionPlace& p) { return site == p.attention->weights_site; });
  if (place == all.end()) return;
  const std::int64_t heads = shape[1], length = shape[2], first = (place - all.begin()) * heads;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < length; ++i)
        std::copy_n(weights.row((b * heads + h) * length + i), length, weights_.begin() + i * length);
      heads_[static_cast<std::size_t>(first + h)].add(targets_[static_cast<std::size_t>(b)], weights_);
    }
  }
}

}  // namespace thimble::inline THIMBLE_PRECISION
