#include "thimble/inspect/effects/patching.h"

#include <cmath>

#include "thimble/core/error.h"
#include "thimble/inspect/effects/measure_effects.h"
#include "thimble/model/finite.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Returns logit(donor's label) - logit(base's label), summed over labels that differ.
double difference(const Model& model, Tape& tape, const Batch& input, const Batch& base, const Batch& donor,
                  Hooks* hooks) {
  tape.rewind();
  const MatrixView logits = model(tape, model_input(input), {.hooks = hooks}).value();
  double sum = 0;
  for (std::size_t i = 0; i < base.labels.size(); ++i) {
    if (base.labels[i] == donor.labels[i]) continue;
    const Real* z = logits.row(static_cast<std::int64_t>(i));
    sum += static_cast<double>(z[donor.labels[i]]) - static_cast<double>(z[base.labels[i]]);
  }
  if (!std::isfinite(sum)) require_finite(tape, model.config(), "patching");
  return sum;
}

Batch sequence(const Evaluator& evaluator, std::int64_t index) {
  require<ShapeError>(index >= 0 && index < evaluator.sequences(),
                      "patching: there is no sequence {}; give 0 to {}", index, evaluator.sequences() - 1);
  Batch batch;
  evaluator.dataset().fill(evaluator.split(), index, 1, batch);
  return batch;
}

void check(const Batch& base, const Batch& donor) {
  require<DataError>(base.lengths == donor.lengths,
                     "patching: the inputs have {} and {} tokens; choose two of equal length",
                     base.lengths[0], donor.lengths[0]);
  if (base.source_length > 0)
    require<DataError>(base.source_lengths == donor.source_lengths,
                       "patching: the inputs have sources of {} and {} tokens; choose two of equal length",
                       base.source_lengths[0], donor.source_lengths[0]);
  require<DataError>(base.rows == donor.rows,
                     "patching: the inputs have labels at different positions; choose two with the same");
  require<DataError>(base.labels != donor.labels,
                     "patching: the inputs have the same labels; choose two that differ");
}

// Returns the tokens of the input: the source of an encoder-decoder, otherwise the sequence.
std::vector<std::string> names(const Evaluator& evaluator, const Batch& batch) {
  const bool pair = batch.source_length > 0;
  const auto input = std::span(pair ? batch.sources : batch.tokens)
                         .first(static_cast<std::size_t>(pair ? batch.source_lengths[0] : batch.lengths[0]));
  std::vector<std::string> result;
  for (const std::int32_t token : input)
    result.push_back(evaluator.dataset().names()[static_cast<std::size_t>(token)]);
  return result;
}

}  // namespace

PatchingReport patching(const Evaluator& evaluator, std::int64_t base_index, std::int64_t donor_index) {
  const Batch base = sequence(evaluator, base_index), donor = sequence(evaluator, donor_index);
  check(base, donor);
  const Model& model = evaluator.model();
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  const std::vector<AttentionLayer>& layers = model.attention_layers();
  std::vector<Tensor> outputs;
  for (const AttentionLayer& layer : layers)
    outputs.emplace_back(
        Shape{1, layer.queries_source ? donor.source_length : donor.length, layer.heads * layer.d_value});
  Capture::Sites sites;
  for (std::size_t l = 0; l < layers.size(); ++l)
    sites.emplace(Site{SiteKind::head_output, static_cast<std::int32_t>(l)}, &outputs[l]);
  Capture capture(sites);
  const double of_donor = difference(model, tape, donor, base, donor, &capture);
  const double of_base = difference(model, tape, base, base, donor, nullptr);
  require<DataError>(of_donor != of_base,
                     "patching: the model's logits are the same for both inputs; choose other inputs");
  PatchingReport report{.base = names(evaluator, base), .donor = names(evaluator, donor), .heads = {}};
  ProgressCounter progress("patching heads", static_cast<double>(layers.size()));
  for (std::int64_t l = 0; l < std::ssize(layers); ++l) {
    const AttentionLayer& layer = layers[static_cast<std::size_t>(l)];
    const ConstMatrixView z = std::as_const(outputs[static_cast<std::size_t>(l)]).matrix();
    const Substitute substitute = [&](std::int64_t, std::int64_t t) { return z.row(t); };
    for (std::int64_t h = 0; h < layer.heads; ++h) {
      const HeadId head{l, h};
      Ablation patch(layers, {&head, 1}, substitute);
      const double patched = difference(model, tape, base, base, donor, &patch);
      report.heads.push_back(
          {head, layer.stack.empty() ? "" : layer.name(), (patched - of_base) / (of_donor - of_base)});
    }
    progress.advance();
  }
  return report;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
