#include "inspect/scores/score_observer.h"

#include <algorithm>

namespace thimble {
inline namespace THIMBLE_PRECISION {

ScoreObserver::ScoreObserver(const Evaluator& evaluator, bool compare)
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
  for (std::size_t i = 0; compare && i < evaluator.chunks().size(); ++i) {
    set_targets(evaluator.chunks()[i]);
    for (const auto& [sequences, all] : targets_)
      for (const ScoreTargets& one : all) counts_[sequences].add(one);
  }
}

bool ScoreObserver::is_last(const AttentionLayer& layer) const {
  const ModelConfig& model = evaluator_.config().model;
  const bool pooled_by_mean =
      model.output.per == OutputPer::sequence && model.output.pooling == Pooling::mean;
  return layer.block + 1 == static_cast<std::int64_t>(evaluator_.model().blocks()) && !pooled_by_mean;
}

// Returns the targets of a sequence. Alignments belong to the attention whose queries predict the targets.
ScoreTargets ScoreObserver::targets(const AttentionLayer& layer, const Batch& batch, std::int64_t sequence,
                                    ScoreTargets::TaskTargets task) const {
  const std::span<const std::int32_t> tokens = batch.tokens_of(sequence);
  if (is_last(layer)) {
    task.queries.emplace();
    const OutputConfig& output = evaluator_.config().model.output;
    const bool per_sequence = output.per == OutputPer::sequence;
    if (per_sequence) task.queries->push_back(output.pooling == Pooling::first ? 0 : std::ssize(tokens) - 1);
    for (std::int64_t i = 0; !per_sequence && i < std::ssize(tokens); ++i)
      if (batch.labels[static_cast<std::size_t>(sequence * batch.length + i)] != kIgnore)
        task.queries->push_back(i);
    if (task.queries->empty()) task.queries.reset();  // a hypothesis without a target
  }
  const ScoreTargets::TaskTargets none{.queries = task.queries};
  if (batch.source_length == 0) return {tokens, layer.causal, task, special_};
  const std::span<const std::int32_t> source = batch.source_of(sequence);
  if (layer.queries_source) return {source, layer.causal, none, special_};
  if (layer.keys_source) return ScoreTargets::cross(std::ssize(tokens), source, task, special_);
  return {tokens, layer.causal, none, special_};
}

void ScoreObserver::set_targets(const Chunk& chunk) {
  const Dataset& data = evaluator_.dataset();
  Example example;
  targets_.clear();
  for (std::int64_t b = 0; b < chunk.batch.sequences; ++b) {
    data.example(evaluator_.split(), chunk.first + b, example);
    const std::vector<Alignment> alignments = data.alignments(example), candidates = data.candidates(example);
    for (const AttentionLayer& layer : layers_) {
      std::vector<ScoreTargets>& made = targets_[sequences_of(layer)];
      if (std::ssize(made) == b)
        made.push_back(
            targets(layer, chunk.batch, b,
                    {alignments, candidates, data.source().kinds().size(), data.task().other_kinds}));
    }
  }
}

void ScoreObserver::begin(const Chunk& chunk) {
  whole_.begin(chunk.batch);
  set_targets(chunk);
}

void ScoreObserver::observe(Site site, const Shape& shape, ConstMatrixView value) {
  if (const auto whole = whole_.observe(site, shape, value)) add(*whole);
}

void ScoreObserver::add(const WholeWeights::LayerWeights& whole) {
  const auto& [index, shape, weights] = whole;
  const Sequences sequences = sequences_of(layers_[index]);
  const std::vector<ScoreTargets>& targets = targets_.at(sequences);
  const auto counts = counts_.find(sequences);
  const std::int64_t heads = shape[1], queries = shape[2], keys = shape[3];
  const std::int64_t first = static_cast<std::int64_t>(index) * heads;
  weights_.resize(static_cast<std::size_t>(queries * keys));
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < queries; ++i)
        std::copy_n(weights.row((b * heads + h) * queries + i), keys, weights_.begin() + i * keys);
      heads_[static_cast<std::size_t>(first + h)].add(targets[static_cast<std::size_t>(b)], weights_,
                                                      counts == counts_.end() ? nullptr : &counts->second);
    }
  }
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
