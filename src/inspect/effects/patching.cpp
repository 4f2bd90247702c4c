#include "thimble/inspect/effects/patching.h"

#include <cmath>

#include "thimble/core/error.h"
#include "thimble/inspect/effects/measure_effects.h"
#include "thimble/model/finite.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// logit(source's label) - logit(base's label), summed over labels that differ.
double difference(const Model& model, Tape& tape, const Batch& input, const Batch& base, const Batch& source,
                  Hooks* hooks) {
  tape.rewind();
  const MatrixView logits = model(tape, model_input(input), {.hooks = hooks}).value();
  double sum = 0;
  for (std::size_t i = 0; i < base.labels.size(); ++i) {
    if (base.labels[i] == source.labels[i]) continue;
    const Real* z = logits.row(static_cast<std::int64_t>(i));
    sum += static_cast<double>(z[source.labels[i]]) - static_cast<double>(z[base.labels[i]]);
  }
  if (!std::isfinite(sum)) require_finite(tape, model.config(), "patching");
  return sum;
}

Batch sequence(const Evaluator& evaluator, std::int64_t index) {
  require<ShapeError>(index >= 0 && index < evaluator.sequences(),
                      "patching: there is no sequence {}, give 0 to {}", index, evaluator.sequences() - 1);
  Batch batch;
  evaluator.dataset().fill(evaluator.split(), index, 1, batch);
  return batch;
}

void check(const Batch& base, const Batch& source) {
  require<DataError>(base.lengths == source.lengths,
                     "patching: the inputs have {} and {} tokens; choose two of equal length",
                     base.lengths[0], source.lengths[0]);
  if (base.source_length > 0)
    require<DataError>(base.source_lengths == source.source_lengths,
                       "patching: the inputs have sources of {} and {} tokens; choose two of equal length",
                       base.source_lengths[0], source.source_lengths[0]);
  require<DataError>(base.rows == source.rows,
                     "patching: the inputs have labels at different positions; choose two with the same");
  require<DataError>(base.labels != source.labels,
                     "patching: the inputs have the same labels; choose two that differ");
}

// Of the input: where there is a source, of that.
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

PatchingReport patching(const Evaluator& evaluator, std::int64_t base_index, std::int64_t source_index) {
  const Batch base = sequence(evaluator, base_index), source = sequence(evaluator, source_index);
  check(base, source);
  const Model& model = evaluator.model();
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  const std::vector<AttentionLayer>& layers = model.attention_layers();
  std::vector<Tensor> outputs;
  for (const AttentionLayer& layer : layers)
    outputs.emplace_back(
        Shape{1, layer.queries_source ? source.source_length : source.length, layer.heads * layer.d_value});
  Capture::Sites sites;
  for (std::size_t l = 0; l < layers.size(); ++l)
    sites.emplace(Site{SiteKind::head_output, static_cast<std::int32_t>(l)}, &outputs[l]);
  Capture capture(sites);
  const double of_source = difference(model, tape, source, base, source, &capture);
  const double of_base = difference(model, tape, base, base, source, nullptr);
  require<DataError>(of_source != of_base,
                     "patching: the model's logits are the same for both inputs; choose other inputs");
  PatchingReport report{.base = names(evaluator, base), .source = names(evaluator, source), .heads = {}};
  ProgressCounter progress("patching heads", static_cast<double>(layers.size()));
  for (std::int64_t l = 0; l < std::ssize(layers); ++l) {
    const ConstMatrixView z = std::as_const(outputs[static_cast<std::size_t>(l)]).matrix();
    const Substitute substitute = [&](std::int64_t, std::int64_t t) { return z.row(t); };
    for (std::int64_t h = 0; h < layers[static_cast<std::size_t>(l)].heads; ++h) {
      const HeadId head{l, h};
      Ablation patch(layers, {&head, 1}, substitute);
      const double patched = difference(model, tape, base, base, source, &patch);
      report.heads.push_back({head, (patched - of_base) / (of_source - of_base)});
    }
    progress.advance();
  }
  return report;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
