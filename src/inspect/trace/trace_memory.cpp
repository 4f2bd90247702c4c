#include "inspect/trace/trace_memory.h"

#include <algorithm>

#include "thimble/engine/attention_layer.h"
#include "thimble/train/dataset.h"
#include "train/step/plan.h"

namespace thimble {

double trace_bytes(const Config& config, std::int64_t sequences) {
  const Dataset data(config.task, config.data, layout_of(config.model), config.train.seed);
  sequences = std::min(sequences, data.size(Split::test));
  Batch batch;
  double weights = 0;
  for (std::int64_t i = 0; i < sequences; ++i) {
    data.fill(Split::test, i, 1, batch);
    for (const AttentionLayer& layer : attention_layers(config.model)) {
      const auto length = [&](bool of_source) {
        return static_cast<double>(of_source ? batch.source_lengths[0] : batch.lengths[0]);
      };
      weights += static_cast<double>(layer.heads) * length(layer.queries_source) * length(layer.keys_source);
    }
  }
  return sizeof(double) * weights;
}

MemoryEstimate trace_memory(const Config& config, std::int64_t sequences) {
  const std::int64_t at_once = std::clamp<std::int64_t>(sequences, 1, micro_batch(tokens_of(config)));
  MemoryEstimate running = evaluator_memory(config);
  running.activations = plan_pass(config, at_once, {.observed = true, .loss = false}).tape_bytes;
  running.sequences = trace_bytes(config, at_once);
  return peak({evaluator_memory(config, true), running});
}

MemoryEstimate input_memory(const Config& config, std::int64_t beams) {
  MemoryEstimate running = evaluator_memory(config);
  running.activations = plan_pass(config, 1, {.observed = true, .loss = false}).tape_bytes;
  if (layout_of(config.model) == Layout::seq2seq) {
    const ModelPlan decoding = plan_pass(config, beams, {.decoding = true});
    running.activations += decoding.tape_bytes + decoding.other_bytes;
  }
  return peak({evaluator_memory(config, true), running});
}

}  // namespace thimble
