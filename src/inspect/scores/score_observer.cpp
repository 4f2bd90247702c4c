#include "inspect/scores/score_observer.h"

#include <algorithm>

namespace thimble {
inline namespace THIMBLE_PRECISION {

ScoreObserver::ScoreObserver(const Evaluator& evaluator)
    : evaluator_(evaluator),
      layers_(evaluator.model().attention_layers()),
      special_(special_tokens(evaluator.config().task)),
      whole_(layers_) {
  const Dataset& data = evaluator.dataset();
  if (data.layout() == Layout::seq2seq) special_.push_back(data.bos_token());
  for (const AttentionLayer& layer : layers_) {
    const std::int64_t length = layer.queries_source ? data.source_length() : data.length();
    heads_.insert(
        heads_.end(), static_cast<std::size_t>(layer.heads),
        layer.cross() ? HeadScorer::cross(length, data.source_length()) : HeadScorer(length, layer.causal));
  }
}

// Returns the targets of a sequence. Alignments belong to the attention whose queries predict the targets.
ScoreTargets ScoreObserver::targets(const AttentionLayer& layer, const Batch& batch, std::int64_t sequence,
                                    const std::vector<Dataset::Alignment>& alignments) const {
  const auto of = [&](const std::vector<std::int32_t>& all, std::int64_t length, const auto& lengths) {
    return std::span(all).subspan(static_cast<std::size_t>(sequence * length),
                                  static_cast<std::size_t>(lengths[static_cast<std::size_t>(sequence)]));
  };
  const auto tokens = of(batch.tokens, batch.length, batch.lengths);
  if (batch.source_length == 0) return {tokens, layer.causal, alignments, special_};
  const auto source = of(batch.sources, batch.source_length, batch.source_lengths);
  if (layer.queries_source) return {source, layer.causal, {}, special_};
  if (layer.keys_source) return ScoreTargets::cross(std::ssize(tokens), source, alignments, special_);
  return {tokens, layer.causal, {}, special_};
}

void ScoreObserver::begin(const Chunk& chunk) {
  const Batch& batch = chunk.batch;
  Example example;
  whole_.begin(batch);
  targets_.clear();
  for (std::int64_t b = 0; b < batch.sequences; ++b) {
    evaluator_.dataset().example(evaluator_.split(), chunk.first + b, example);
    const std::vector<Dataset::Alignment> alignments = evaluator_.dataset().alignments(example);
    for (const AttentionLayer& layer : layers_) {
      std::vector<ScoreTargets>& made = targets_[sequences_of(layer)];
      if (std::ssize(made) == b) made.push_back(targets(layer, batch, b, alignments));
    }
  }
}

void ScoreObserver::observe(Site site, const Shape& shape, ConstMatrixView value) {
  if (const auto whole = whole_.observe(site, shape, value)) add(*whole);
}

void ScoreObserver::add(const WholeWeights::LayerWeights& whole) {
  const auto& [index, shape, weights] = whole;
  const std::vector<ScoreTargets>& targets = targets_.at(sequences_of(layers_[index]));
  const std::int64_t heads = shape[1], queries = shape[2], keys = shape[3];
  const std::int64_t first = static_cast<std::int64_t>(index) * heads;
  weights_.resize(static_cast<std::size_t>(queries * keys));
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < queries; ++i)
        std::copy_n(weights.row((b * heads + h) * queries + i), keys, weights_.begin() + i * keys);
      heads_[static_cast<std::size_t>(first + h)].add(targets[static_cast<std::size_t>(b)], weights_);
    }
  }
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
