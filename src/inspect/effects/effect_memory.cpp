#include "inspect/effects/effect_memory.h"

#include <algorithm>
#include <map>

#include "inspect/effects/joint_effects.h"
#include "thimble/engine/attention_layer.h"
#include "thimble/train/dataset.h"
#include "train/step/plan.h"

namespace thimble {

namespace {

// Of the code of inspection, and small blocks; measured on Debian 12.
constexpr double kCode = 1.5 * (1 << 20);

// What ablation captures of each sequence, in bytes: the outputs of a layer's heads and the inputs of blocks, those
// of a decoder block being two. Recurrent models have no blocks.
struct Captures {
  double largest_layer = 0, inputs = 0;
};

Captures captures_of(const Config& config) {
  const ModelSizes sizes = model_sizes(config);
  const auto width = static_cast<double>(config.model.d_model);
  Captures captures;
  std::map<std::int64_t, double> blocks;
  for (const AttentionLayer& layer : attention_layers(config.model)) {
    const auto queries = static_cast<double>(layer.queries_source ? sizes.source_length : sizes.length),
               source = static_cast<double>(sizes.source_length);
    const bool decodes = sizes.source_length > 0 && !layer.queries_source;
    double& input = blocks[layer.block];
    input = config.model.kind == ModelKind::recurrent ? 0 : width * (queries + (decodes ? source : 0));
    const double outputs = queries * static_cast<double>(layer.heads * layer.d_value);
    captures.largest_layer = std::max(captures.largest_layer, real_size(config) * (input + outputs));
  }
  for (const auto& [block, input] : blocks) captures.inputs += real_size(config) * input;
  return captures;
}

// Returns the sequences on which heads are ablated together, if few of them cost something alone.
double joint_sequences(const Config& config, double sequences) {
  const std::vector<AttentionLayer> layers = attention_layers(config.model);
  double heads = 0, passes = 1;
  for (const AttentionLayer& layer : layers) heads += static_cast<double>(layer.heads);
  const auto blocks = config.model.kind == ModelKind::recurrent ? 0 : layers.back().block + 1;
  for (const AttentionLayer& layer : layers) {
    const double share = blocks == 0 ? 1 : 1 - static_cast<double>(layer.block) / static_cast<double>(blocks);
    passes += static_cast<double>(layer.heads) * (1 + share * (heads + 1) / 2);
  }
  return std::min(sequences, std::max<double>(kMinJointSequences, kJointPasses / passes * sequences));
}

// Returns the micro-batch with the most labels of the first test sequences, of at most kDrawn of them.
Batch largest_batch(const Config& config, std::int64_t sequences, std::int64_t at_once) {
  constexpr std::int64_t kDrawn = 1000;
  const Dataset data(config.task, config.data, layout_of(config.model), config.train.seed);
  sequences = std::min({sequences, data.size(Split::test), kDrawn});
  Batch largest, batch;
  for (std::int64_t first = 0; first < sequences; first += at_once) {
    data.fill(Split::test, first, std::min(at_once, sequences - first), batch);
    if (first == 0 || batch.row_labels.size() > largest.row_labels.size()) largest = batch;
  }
  return sequences > 0 ? largest : full_batch(config, at_once);
}

}  // namespace

MemoryEstimate effects_memory(const Config& config, std::int64_t sequences, double stored) {
  MemoryEstimate loaded = evaluator_memory(config);
  loaded.program += kCode;
  const std::int64_t micro = micro_batch(tokens_of(config)), at_once = std::min(micro, sequences);
  if (sequences == 0 || attention_layers(config.model).empty()) return loaded;
  const auto count = static_cast<double>(sequences),
             threads = static_cast<double>(std::min(loaded.threads, (sequences + micro - 1) / micro));
  const Batch batch = largest_batch(config, sequences, at_once);
  const ModelPlan pass =
      plan_model(config, batch, {.observed = true, .replaced = true, .per_sequence = true});
  const ModelPlan gradients =
      plan_model(config, batch, {.gradients = true, .observed = true, .per_sequence = true, .all = true});
  const double weights = real_size(config) * pass.parameters;
  // Tokens, labels and rows of every sequence, and its results.
  const double results =
      count * (sizeof(SequenceResult) + 4 * sizeof(std::int32_t) * static_cast<double>(tokens_of(config)));
  const Captures captures = captures_of(config);
  double heads = 0;
  for (const AttentionLayer& layer : attention_layers(config.model))
    heads += static_cast<double>(layer.heads);

  MemoryEstimate ablating = loaded;
  ablating.activations = threads * pass.tape_bytes;
  ablating.sequences = std::max(count * captures.largest_layer, weights) + 3 * results;

  // Every pair of heads has a result in a series of passes.
  const double pairs = 1 + heads * (heads + 1) / 2;
  MemoryEstimate later = loaded;
  later.gradients = threads * weights;
  later.activations = threads * (pass.tape_bytes + gradients.tape_bytes);
  later.sequences =
      results +
      std::max(joint_sequences(config, count) * (captures.inputs + pairs * sizeof(SequenceResult)), stored);
  return peak({evaluator_memory(config, true), ablating, later});
}

}  // namespace thimble
