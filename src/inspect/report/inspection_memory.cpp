#include "inspect/report/inspection_memory.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "inspect/circuits/circuit_memory.h"
#include "inspect/effects/effect_memory.h"
#include "inspect/scores/score_memory.h"
#include "inspect/trace/trace_memory.h"
#include "thimble/train/dataset.h"
#include "thimble/train/json.h"
#include "train/step/plan.h"

namespace thimble {

namespace {

// The characters of an attention weight in indented JSON: a line break, 14 spaces, up to 20 digits and a comma.
// The text is in memory twice, before and after control characters are escaped.
constexpr double kJsonText = 36;

}  // namespace

MemoryEstimate inspection_memory(const Config& config, const InspectOptions& options) {
  const Dataset data(config.task, config.data, layout_of(config.model), config.train.seed);
  const std::int64_t count = std::min(options.sequences, data.size(Split::test)),
                     at_once = std::min(micro_batch(tokens_of(config)), count);
  const double examples = trace_bytes(config, std::min(options.examples, count)),
               chunk = trace_bytes(config, std::min(options.examples, at_once));
  const double stored = score_memory(config, static_cast<double>(count), static_cast<double>(at_once)) +
                        circuit_memory(config, static_cast<double>(at_once)) + examples + chunk;
  double numbers = examples / sizeof(double);  // and mean weights of all heads, their counts and the rollout
  std::uint64_t columns = 1;
  for (const AttentionLayer& layer : attention_layers(config.model)) {
    const std::int64_t queries = layer.queries_source ? data.source_length() : data.length(),
                       keys = layer.keys_source ? data.source_length() : data.length();
    numbers +=
        (alignments(config) * static_cast<double>(layer.heads) + 1) * static_cast<double>(queries * keys);
    columns = std::max(columns, static_cast<std::uint64_t>(keys));
  }
  if (config.model.kind == ModelKind::encoder)
    numbers += alignments(config) * static_cast<double>(data.length() * data.length());
  const MemoryEstimate measuring = effects_memory(config, count, stored);
  MemoryEstimate writing{.threads = measuring.threads, .program = measuring.program, .data = measuring.data};
  // Arrays of JSON grow to a power of two.
  const double value =
      sizeof(Json) * static_cast<double>(std::bit_ceil(columns)) / static_cast<double>(columns);
  writing.sequences = numbers * (sizeof(double) + (options.json || options.page ? value : 0) +
                                 (options.json ? 2 * kJsonText : 0));
  return peak({measuring, writing});
}

}  // namespace thimble
