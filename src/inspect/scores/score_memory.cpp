#include "inspect/scores/score_memory.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "thimble/engine/attention_layer.h"
#include "thimble/inspect/score_targets.h"
#include "thimble/train/task.h"
#include "train/step/plan.h"

namespace thimble {

namespace {

constexpr double kNode = 64;  // bytes of an entry of std::map<std::int32_t, double>

// Returns how many of the vocabulary occur among that many tokens, drawn alike.
double distinct(double vocabulary, double tokens) {
  return vocabulary * -std::expm1(-tokens / std::max(1.0, vocabulary));
}

}  // namespace

double alignments(const Config& config) {
  const TaskConfig& task = config.task;
  return task.table != nullptr || (task.min_length > 0 && task.min_length < task.length) ? 2 : 1;
}

// Sums of the weights and of tokens by head; by kind of sequences, counts of target cells by length and of tokens
// by position, and the target cells of a micro-batch, with every key as a candidate.
double score_memory(const Config& config, double sequences, double at_once) {
  constexpr double kScorers = 3, kCompared = 2;  // observers, and those of them that count
  constexpr double kTokenScores = 3, kCellBytes = sizeof(ScoreTargets::Cell),
                   kRivalBytes = sizeof(ScoreTargets::Rival);
  const TaskConfig& c = config.task;
  const Task& task = checked_task(c);
  const ModelSizes sizes = model_sizes(config);
  const auto vocabulary = static_cast<double>(sizes.vocabulary),
             heads = static_cast<double>(config.model.heads);
  const double targets = task.kinds.size() > 1 ? 1 + static_cast<double>(task.kinds.size()) : 1;
  const double lengths = c.min_length > 0 ? static_cast<double>(c.length - c.min_length + 1) : 1;
  const double shortest =
      c.min_length > 0 ? static_cast<double>(c.min_length) / static_cast<double>(c.length) : 1;
  const double counts = kCompared * sizeof(std::uint32_t) * (kTokenScores + targets) *
                        std::min(lengths, sequences) * (1 + shortest + shortest * shortest) / 3;
  const double cells = kScorers * at_once *
                       (kTokenScores * kCellBytes / static_cast<double>(c.symbols) +
                        (task.candidates != nullptr ? targets * kRivalBytes : 0));
  // Sums and means, from the start and from the end; the counts of a layer.
  const double sums = sizeof(double) * (alignments(config) * (kScorers + 1) * heads + 1);
  std::set<std::pair<bool, bool>> kinds;  // of queries and keys, which have targets of their own
  double bytes = 0, largest = 0;
  for (const AttentionLayer& layer : attention_layers(config.model)) {
    const bool is_new = kinds.insert({layer.queries_source, layer.keys_source}).second;
    const auto queries = static_cast<double>(layer.queries_source ? sizes.source_length : sizes.length),
               keys = static_cast<double>(layer.keys_source ? sizes.source_length : sizes.length);
    const double tokens = distinct(vocabulary, sequences * keys),
                 by_position = keys * distinct(vocabulary, sequences);
    largest = std::max(largest, queries * keys);
    bytes += queries * keys * (sums + (is_new ? counts + cells : 0)) +
             kCompared * kNode * (heads * tokens + (is_new ? tokens + by_position : 0));
  }
  // Each observer copies the weights of a sequence; a causal scorer copies them again, and the positional share
  // takes two more copies, one at a time.
  return bytes + (kScorers + 3) * sizeof(double) * largest;
}

}  // namespace thimble
