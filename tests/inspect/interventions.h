// Shared by tests of interventions on heads: a small trained model, and plain passes over one sequence at a
// time as reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "inspect/effects/measure_effects.h"
#include "inspect/patching/patching.h"
#include "train/config/small_config.h"
#include "train/step/trainer.h"

namespace thimble {

constexpr double kTolerance = sizeof(Real) == 8 ? 1e-10 : 2e-5;

// A model after some steps, with biases that are not 0.
struct Trained {
  explicit Trained(OpenConfig config, std::int64_t sequences = 60, int steps = 30)
      : trainer(config), evaluator(config) {
    evaluator.select(Split::test, sequences);
    for (int i = 0; i < steps; ++i) trainer.step();
    for (const auto& entry : parameters().entries()) {
      if (!entry.name.ends_with("bias")) continue;
      for (std::size_t i = 0; i < entry.size(); ++i)
        parameters().values()[entry.offset + i] += static_cast<Real>(0.1 * std::cos(static_cast<double>(i)));
    }
    give();
  }
  ParameterStore& parameters() { return trainer.model().parameters(); }
  // Copies the parameters of the trainer to the evaluator.
  void give() { std::ranges::copy(parameters().values(), evaluator.model().parameters().values().begin()); }
  // Zeroes what a head adds to the residual stream: its columns of the output projection.
  void silence(ParameterStore& store, HeadId id) const {
    const ConstMatrixView weight = attention(id.layer).head(store, id.head).output;
    const std::int64_t first = weight.data - store.values().data();
    for (std::int64_t row = 0; row < weight.rows; ++row)
      std::fill_n(store.values().data() + first + row * weight.stride, weight.cols, Real{0});
  }
  const MultiHeadAttention& attention(std::int64_t layer) const {
    const Model& model = trainer.model();
    return *model.attention(model.attention_layers()[static_cast<std::size_t>(layer)]);
  }
  std::vector<HeadId> heads() const {
    std::vector<HeadId> all;
    for (std::int64_t l = 0; l < trainer.model().config().layers; ++l)
      for (std::int64_t h = 0; h < trainer.model().config().heads; ++h) all.push_back({l, h});
    return all;
  }

  Trainer trainer;
  Evaluator evaluator;
};

inline Config sequence_config() {  // one output per sequence
  Config config = small_config();
  config.task = {.name = "parity", .length = 8};
  config.model.layers = 2;
  config.model.output.per = OutputPer::sequence;
  return config;
}

// Scales the columns of a head in a pass over one sequence, or replaces them by `rows` (T, C).
struct Plain : Hooks {
  bool replace(Site site, const Shape&, MatrixView value) override {
    if (site != changed) return false;
    const std::int64_t width = value.cols / heads;
    for (std::int64_t t = 0; t < value.rows; ++t) {
      for (std::int64_t c = head * width; c < (head + 1) * width; ++c) {
        Real& x = value.row(t)[c];
        x = rows.empty() ? factor * x : rows[static_cast<std::size_t>(t * value.cols + c)];
      }
    }
    return true;
  }
  void observe(Site site, const Shape&, ConstMatrixView value) override {
    if (site.kind == SiteKind::head_output) seen.emplace_back(value.data, value.data + value.elements());
  }
  std::optional<Site> changed;
  std::int64_t head = 0, heads = 1;
  Real factor = 1;
  std::vector<Real> rows;
  std::vector<std::vector<Real>> seen;  // by layer, (T, C)
};

struct Result {
  double loss = 0, labeled = 0, correct = 0;
  std::vector<double> logits;
  Batch batch;
};

inline Result plain_pass(const Trained& trained, std::int64_t sequence, Plain& hooks) {
  Result result;
  trained.trainer.dataset().fill(Split::test, sequence, 1, result.batch);
  const Batch& batch = result.batch;
  Tape tape(Tape::Mode::inference);
  tape.bind(trained.trainer.model().parameters(), {});
  hooks.seen.clear();
  const MatrixView z = trained.trainer.model()(tape, model_input(batch), {.hooks = &hooks}).value();
  result.logits.assign(z.data, z.data + z.elements());
  for (std::int64_t i = 0; i < z.rows; ++i) {
    const std::int32_t label = batch.labels[static_cast<std::size_t>(i)];
    if (label == kIgnore) continue;
    double sum = 0;
    for (std::int64_t j = 0; j < z.cols; ++j) sum += std::exp(double(z.row(i)[j]) - double(z.row(i)[label]));
    result.loss += std::log(sum);
    result.labeled += 1;
    result.correct += std::max_element(z.row(i), z.row(i) + z.cols) - z.row(i) == label;
  }
  return result;
}

inline Plain change(const Trained& trained, HeadId id) {
  Plain hooks;
  hooks.changed = {SiteKind::head_output, static_cast<std::int32_t>(id.layer)};
  hooks.head = id.head;
  hooks.heads = trained.trainer.model().config().heads;
  return hooks;
}

// Returns the effects of a head.
inline const HeadEffects& effects_of(const EffectsReport& report, HeadId id) {
  return *std::ranges::find(report.heads, id, &HeadEffects::id);
}

// Head outputs of every sequence, [sequence][layer], and the lengths.
struct Observed {
  explicit Observed(const Trained& trained) {
    for (std::int64_t i = 0; i < trained.evaluator.sequences(); ++i) {
      Plain hooks;
      lengths.push_back(plain_pass(trained, i, hooks).batch.lengths[0]);
      outputs.push_back(hooks.seen);
    }
  }
  std::vector<std::vector<std::vector<Real>>> outputs;
  std::vector<std::int32_t> lengths;
};

}  // namespace thimble
