// Models on disk, reports on models whose weights a test sets, and plain passes over one sequence at a time as
// reference.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "inspect/interventions.h"
#include "thimble/inspect/inspect.h"
#include "thimble/train/run.h"
#include "train/files/checkpoint.h"
#include "train/files/temporary_directory.h"

namespace thimble {

// Returns a config with two layers, and sources and targets of different lengths.
inline Config deep_config() {
  Config config = writing_config();
  config.model.layers = 2;
  return config;
}

// A model after some steps of training, and its weights on disk.
struct SavedModel {
  explicit SavedModel(const OpenConfig& config, int steps = 5)
      : trainer(config), source{config, directory / "weights"} {
    for (int i = 0; i < steps; ++i) trainer.step();
    save_weights(source.weights, trainer.model().parameters(), {});
  }
  TemporaryDirectory directory;
  Trainer trainer;
  ModelSource source;
};

// Returns the report on a model of that config, whose weights are set by a function.
inline InspectReport inspect_weights(const OpenConfig& config, const std::function<void(Model&)>& set_weights,
                                     const InspectOptions& options = {.sequences = 60, .examples = 0}) {
  const TemporaryDirectory directory;
  const std::unique_ptr<Model> model = make_model(config.model, make_dataset(config));
  set_weights(*model);
  save_weights(directory / "weights", model->parameters(), {});
  return inspect({config, directory / "weights"}, options);
}

// A model with biases that are not 0, and its weights on disk.
struct Saved {
  explicit Saved(const OpenConfig& config, int steps = 20)
      : trained(config, 60, steps), source{config, directory / "weights"} {
    save_weights(source.weights, trained.parameters(), {});
  }
  TemporaryDirectory directory;
  Trained trained;
  ModelSource source;
};

struct SiteRecorder : Hooks {
  void observe(Site site, const Shape& shape, ConstMatrixView value) override {
    seen[site].assign(value.data, value.data + value.elements());
    std::vector<std::int64_t>& sizes = shapes[site];
    for (int d = 0; d < shape.rank(); ++d) sizes.push_back(shape[d]);
  }
  std::map<Site, std::vector<double>> seen;
  std::map<Site, std::vector<std::int64_t>> shapes;
};

inline Site weights_site(std::size_t layer) {
  return {SiteKind::attention_weights, static_cast<std::int32_t>(layer)};
}

// Returns the attention of all layers, without padding.
inline std::vector<double> attention_of(const Model& model, const SiteRecorder& recorder,
                                        const Batch& batch) {
  std::vector<double> all;
  for (std::size_t l = 0; l < model.attention_layers().size(); ++l) {
    const AttentionLayer& layer = model.attention_layers()[l];
    const std::vector<double>& weights = recorder.seen.at(weights_site(l));
    const std::int64_t rows = layer.queries_source ? batch.source_length : batch.length;
    const std::int64_t columns = layer.keys_source ? batch.source_length : batch.length;
    const std::int32_t queries = layer.queries_source ? batch.source_lengths[0] : batch.lengths[0];
    const std::int32_t keys = layer.keys_source ? batch.source_lengths[0] : batch.lengths[0];
    for (std::int64_t row = 0; row < std::ssize(weights) / columns; ++row)
      if (row % rows < queries)
        all.insert(all.end(), weights.begin() + row * columns, weights.begin() + row * columns + keys);
  }
  return all;
}

inline SiteRecorder pass_over(const Model& model, const Batch& batch) {
  SiteRecorder recorder;
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  model(tape, model_input(batch), {.hooks = &recorder});
  return recorder;
}

}  // namespace thimble
