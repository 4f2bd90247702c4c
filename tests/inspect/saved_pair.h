// An encoder-decoder on disk, and plain passes over one pair at a time to compare with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/temporary_directory.h"
#include "inspect/interventions.h"
#include "thimble/train/checkpoint.h"

namespace thimble {

// Two layers, and sources and answers of different lengths.
inline Config deep_config() {
  Config config = writing_config();
  config.model.layers = 2;
  return config;
}

// A model after some steps and the place of its weights.
struct Saved {
  explicit Saved(const Config& config, int steps = 20)
      : trained(config, 60, steps), source{config, directory / "weights"} {
    save_weights(source.weights, trained.parameters(), {});
  }
  TemporaryDirectory directory;
  Trained trained;
  ModelSource source;
};

struct Recorder : Hooks {
  void observe(std::string_view site, const Shape& shape, ConstMatrixView value) override {
    seen[std::string(site)].assign(value.data, value.data + value.elements());
    std::vector<std::int64_t>& sizes = shapes[std::string(site)];
    for (int d = 0; d < shape.rank(); ++d) sizes.push_back(shape[d]);
  }
  std::map<std::string, std::vector<double>> seen;
  std::map<std::string, std::vector<std::int64_t>> shapes;
};

// The weights of all places, without padding.
inline std::vector<double> attention_of(const Model& model, const Recorder& recorder, const Batch& batch) {
  std::vector<double> all;
  for (const AttentionPlace& place : model.attentions()) {
    const std::vector<double>& weights = recorder.seen.at(place.weights_site);
    const std::int64_t rows = place.queries_source ? batch.source_length : batch.length;
    const std::int64_t columns = place.keys_source ? batch.source_length : batch.length;
    const std::int32_t queries = place.queries_source ? batch.source_lengths[0] : batch.lengths[0];
    const std::int32_t keys = place.keys_source ? batch.source_lengths[0] : batch.lengths[0];
    for (std::int64_t row = 0; row < std::ssize(weights) / columns; ++row)
      if (row % rows < queries)
        all.insert(all.end(), weights.begin() + row * columns, weights.begin() + row * columns + keys);
  }
  return all;
}

inline Recorder pass_over(const Model& model, const Batch& batch) {
  Recorder recorder;
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  model(tape, model_input(batch), {.hooks = &recorder});
  return recorder;
}

}  // namespace thimble
