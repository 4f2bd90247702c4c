#include "inspect/circuits/circuit_memory.h"

#include <algorithm>

#include "inspect/circuits/attribution.h"
#include "inspect/circuits/attribution_rounding.h"
#include "inspect/scores/score_memory.h"
#include "thimble/engine/attention_layer.h"
#include "thimble/inspect/circuits.h"
#include "train/step/cost.h"
#include "train/step/plan.h"

namespace thimble {

namespace {

// Of one layer, in doubles: the output projection of its heads, once and by head.
double projections(double d_model, const AttentionLayer& layer) {
  return 2 * d_model * static_cast<double>(layer.heads * layer.d_value);
}

}  // namespace

double circuit_memory(const Config& config, double at_once) {
  if (config.model.kind != ModelKind::encoder) return 0;
  const ModelSizes sizes = model_sizes(config);
  const auto vocabulary = static_cast<double>(sizes.vocabulary), length = static_cast<double>(sizes.length),
             d_model = static_cast<double>(config.model.d_model);
  const double map = vocabulary * d_model;
  double attribution = 0, construction = 0, maps = 0, largest_head = 0;
  const bool attributes = attribution_unavailable(config.model).empty();
  for (const AttentionLayer& layer : attention_layers(config.model)) {
    const auto heads = static_cast<double>(layer.heads), width = static_cast<double>(layer.d_value);
    if (attributes) {
      attribution += vocabulary * (heads * width + 1);  // directions of heads and of biases
      construction = std::max(construction, projections(d_model, layer));
    }
    if (vocabulary <= kTokenMapVocabulary) maps += 2 * heads * vocabulary * vocabulary;
    largest_head = std::max(largest_head, width);
  }
  if (attributes) {
    const double rows = at_once * length,
                 parts = 3 + static_cast<double>(config.model.layers * (config.model.heads + 2));
    attribution += map + 5 * vocabulary + 2 * rows * parts;
    construction += map;  // the output layer in double
  }
  // The embedding, once transposed, the output layer, and both times the projections of a head.
  const double circuits = 3 * map + 2 * vocabulary * largest_head + maps;
  // The sums of all sequences and their means; of a micro-batch, a matrix each, and one of a layer.
  const double rollout =
      length * length * (2 * alignments(config) + (at_once + 1) * real_size(config) / sizeof(double));
  return sizeof(double) * (attribution + std::max(construction, circuits) + rollout);
}

}  // namespace thimble
