#include "thimble/inspect/report/inspection_memory.h"

#include <algorithm>

#include "inspect/circuits/circuit_memory.h"
#include "inspect/scores/score_memory.h"
#include "thimble/data/dataset.h"
#include "thimble/inspect/effects/effect_memory.h"
#include "thimble/inspect/trace/trace_memory.h"
#include "thimble/train/plan.h"

namespace thimble {

MemoryEstimate inspection_memory(const Config& config, const InspectOptions& options) {
  // The bytes of a number in JSON: a value, and about three times its 20 characters.
  constexpr double kJsonNumber = 16 + 3 * 20;
  const Dataset data(config.task, config.data, layout_of(config.model), config.train.seed);
  const std::int64_t count = std::min(options.sequences, data.size(Split::test)),
                     at_once = std::min(micro_batch(tokens_of(config)), count);
  const double examples = trace_bytes(config, std::min(options.examples, count)),
               chunk = trace_bytes(config, std::min(options.examples, at_once));
  const double stored = score_memory(config, static_cast<double>(count), static_cast<double>(at_once)) +
                        circuit_memory(config, static_cast<double>(at_once)) + examples + chunk;
  double weights = 0;  // mean weights of all heads, and their counts
  for (const AttentionLayer& layer : attention_layers(config.model))
    weights += (alignments(config) * static_cast<double>(layer.heads) + 1) *
               static_cast<double>((layer.queries_source ? data.source_length() : data.length()) *
                                   (layer.keys_source ? data.source_length() : data.length()));
  const MemoryEstimate measuring = effects_memory(config, count, stored);
  MemoryEstimate writing{.threads = measuring.threads, .program = measuring.program, .data = measuring.data};
  writing.sequences =
      (examples / sizeof(double) + weights) * (sizeof(double) + (options.written ? kJsonNumber : 0));
  return peak({measuring, writing});
}

}  // namespace thimble
