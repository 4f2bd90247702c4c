// What holds of every model, whatever its config.
#include <algorithm>
#include <cmath>

#include "fuzz/architecture_pass.h"
#include "rounding.h"
#include "thimble/engine/ops.h"
#include "train/step/evaluator.h"
#include "train/step/plan.h"
#include "train/step/trainer.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace {

using Broken = std::vector<std::string>;

struct Numbers {
  std::vector<double> logits;  // of all positions
  Real loss = 0;
  AlignedVector<Real> gradients;
};

std::vector<double> numbers_of(ConstMatrixView view) {
  std::vector<double> out;
  for (std::int64_t r = 0; r < view.rows; ++r) out.insert(out.end(), view.row(r), view.row(r) + view.cols);
  return out;
}

Numbers compute(const Model& model, const Architecture& a, const Batch& batch, const PassOptions& options) {
  Tape tape(Tape::Mode::inference), training;
  tape.bind(model.parameters(), {});
  Numbers out{.logits = numbers_of(model(tape, model_input(batch), {}).value()),
              .gradients = AlignedVector<Real>(model.parameters().size())};
  training.bind(model.parameters(), out.gradients);
  const Var loss = record_loss(training, model, a, batch, options);
  training.backward(loss, 1, Tape::RetainGrads::leaves);
  out.loss = loss.item();
  return out;
}

// Replaces the tokens of the padding.
void change_padding(std::vector<std::int32_t>& tokens, std::span<const std::int32_t> lengths,
                    std::int64_t vocabulary) {
  const std::size_t width = tokens.size() / std::max<std::size_t>(lengths.size(), 1);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (std::cmp_greater_equal(i % width, lengths[i / width]))
      tokens[i] = static_cast<std::int32_t>((tokens[i] + 1) % vocabulary);
}

// Returns the logits of the positions of a sequence, without those of its padding.
std::span<const double> logits_of(const std::vector<double>& logits, const Architecture& a, std::int64_t b) {
  const Batch& batch = a.batch;
  const auto of_sequence = static_cast<std::int64_t>(logits.size()) / batch.sequences;
  const std::int64_t positions =
      a.config.model.output.per == OutputPer::sequence ? 1 : batch.lengths[static_cast<std::size_t>(b)];
  const std::int64_t all = a.config.model.output.per == OutputPer::sequence ? 1 : batch.length;
  return std::span(logits).subspan(static_cast<std::size_t>(b * of_sequence),
                                   static_cast<std::size_t>(positions * (of_sequence / all)));
}

// Other tokens in the padding change no bit of the loss, the gradients, and the logits of other positions.
void check_padding_tokens(const Model& model, const Architecture& a, const Numbers& expected,
                          Broken& broken) {
  Batch batch = a.batch;
  change_padding(batch.tokens, batch.lengths, a.sizes.vocabulary);
  change_padding(batch.sources, batch.source_lengths, a.sizes.vocabulary);
  const Numbers found = compute(model, a, batch, {});
  if (found.loss != expected.loss) broken.push_back("tokens of the padding change the loss");
  if (found.gradients != expected.gradients) broken.push_back("tokens of the padding change the gradients");
  for (std::int64_t b = 0; b < batch.sequences; ++b)
    if (!std::ranges::equal(logits_of(found.logits, a, b), logits_of(expected.logits, a, b)))
      broken.push_back(fmt::format("tokens of the padding change the logits of sequence {}", b));
}

// Returns sequence b alone, without padding.
Batch alone(const Batch& batch, std::int64_t b) {
  const auto cut = [b](const std::vector<std::int32_t>& tokens, std::int64_t width, std::int32_t length) {
    return std::vector<std::int32_t>(tokens.begin() + b * width, tokens.begin() + b * width + length);
  };
  const std::int32_t length = batch.lengths[static_cast<std::size_t>(b)];
  Batch out;
  out.sequences = 1;
  out.length = length;
  out.tokens = cut(batch.tokens, batch.length, length);
  if (batch.source_length == 0) return out;
  out.source_length = batch.source_lengths[static_cast<std::size_t>(b)];
  out.sources = cut(batch.sources, batch.source_length, static_cast<std::int32_t>(out.source_length));
  return out;
}

// A sequence has the same logits alone as in a batch with longer ones, but for rounding.
void check_padding(const Model& model, const Architecture& a, const Numbers& expected, Broken& broken) {
  for (std::int64_t b = 0; b < a.batch.sequences; ++b) {
    const Batch batch = alone(a.batch, b);
    Tape tape(Tape::Mode::inference);
    tape.bind(model.parameters(), {});
    const std::vector<double> found = numbers_of(model(tape, model_input(batch), {}).value());
    const auto in_batch = logits_of(expected.logits, a, b);
    if (!same_but_for_rounding(a.config.model, found, {in_batch.begin(), in_batch.end()}))
      broken.push_back(fmt::format("sequence {} has other logits without the padding", b));
  }
}

// Chosen rows of logits are those of all positions, but for rounding.
void check_rows(const Model& model, const Architecture& a, const Numbers& expected, Broken& broken) {
  if (a.config.model.output.per == OutputPer::sequence) return;
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  ModelInput input = model_input(a.batch);
  input.rows = a.batch.rows;
  const MatrixView found = model(tape, input, {}).value();
  std::vector<double> rows;
  for (const std::int32_t row : a.batch.rows)
    for (std::int64_t v = 0; v < found.cols; ++v)
      rows.push_back(expected.logits[static_cast<std::size_t>(row * found.cols + v)]);
  if (!same_but_for_rounding(a.config.model, numbers_of(found), rows))
    broken.push_back("logits of some positions differ from those of all");
}

// Hooks that only read change no bit, though attention then keeps weights that it else computes again.
void check_hooks(const Model& model, const Architecture& a, const Numbers& expected, Broken& broken) {
  const Numbers found = compute(model, a, a.batch, {.observed = true});
  if (found.loss != expected.loss) broken.push_back("hooks that read change the loss");
  if (!same_but_for_rounding(a.config.model, {found.gradients.begin(), found.gradients.end()},
                             {expected.gradients.begin(), expected.gradients.end()}))
    broken.push_back("hooks that read change the gradients");
}

// Attention of the config's heads with weights that are kept, and computed again: the same bits.
void check_kept_weights(const Architecture& a, Broken& broken) {
  const ModelConfig& model = a.config.model;
  if (model.kind == ModelKind::recurrent || model.mixer != Mixer::attention) return;
  const AttentionSizes sizes = model.attention_sizes();
  const bool across = a.batch.source_length > 0;
  const std::int64_t batch = a.batch.sequences, queries = a.batch.length,
                     keys = across ? a.batch.source_length : queries;
  const Random random(a.seed, Stream::inspect);
  std::uint64_t i = 0;
  const auto draw = [&](std::int64_t time, std::int64_t columns) {
    Tensor x({batch, time, columns});
    for (Real& value : x.values()) value = static_cast<Real>(random.normal(i++));
    return x;
  };
  const Tensor q = draw(queries, sizes.heads * sizes.d_key), k = draw(keys, sizes.kv_heads * sizes.d_key),
               v = draw(keys, sizes.kv_heads * sizes.d_value),
               dout = draw(queries, sizes.heads * sizes.d_value);
  std::vector<Real> slopes;
  if (model.positions == Positions::alibi && sizes.softmax)
    for (std::int64_t h = 0; h < sizes.heads; ++h) slopes.push_back(Real(0.5) / static_cast<Real>(h + 1));
  const auto run = [&](bool kept) {
    AttentionOptions options;
    options.heads = sizes.heads;
    options.kv_heads = sizes.kv_heads;
    options.mask = {.causal = !across && model.attention.mask == Mask::causal,
                    .lengths = across ? a.batch.source_lengths : a.batch.lengths,
                    .slopes = slopes};
    options.softmax = sizes.softmax;
    options.dropout = static_cast<Real>(model.attention.dropout);
    if (options.dropout > 0) options.key = kernels::DropoutKey{Random(a.seed, Stream::dropout), 1, 0, 1};
    options.keep_weights = kept;
    Tape tape;
    const Var in[] = {tape.variable(q), tape.variable(k), tape.variable(v)};
    const Var y = attention(in[0], in[1], in[2], options);
    tape.backward(y, dout.matrix());
    std::vector<std::vector<double>> out{numbers_of(y.value())};
    for (const Var x : in) out.push_back(numbers_of(x.grad()));
    return out;
  };
  if (run(true) != run(false)) broken.push_back("attention that keeps its weights has other bits");
}

// A plan has the bytes that passes take.
void check_plan(const Model& model, const Architecture& a, Broken& broken) {
  Config config = a.config;
  config.train.precision = sizeof(Real) == 8 ? Precision::float64 : Precision::float32;
  for (const bool training : {true, false}) {
    AlignedVector<Real> gradients(training ? model.parameters().size() : 0);
    Tape tape(training ? Tape::Mode::training : Tape::Mode::inference);
    tape.bind(model.parameters(), gradients);
    const Var loss = record_loss(tape, model, a, a.batch, {.training = training});
    if (training) tape.backward(loss, 1, Tape::RetainGrads::leaves);
    const double planned =
        plan_model(config, a.batch, training ? PlannedPass::training : PlannedPass::inference).tape_bytes;
    if (planned != static_cast<double>(tape.bytes()))
      broken.push_back(fmt::format("{} bytes are planned, {} taken", planned, tape.bytes()));
  }
}

// Weights after two steps have the same bits with one and two threads.
void check_threads(const Architecture& a, Broken& broken) {
  std::string hashes[2];
  for (const std::int64_t threads : {1, 2}) {
    Config config = a.config;
    config.train.threads = threads;
    Trainer trainer(config);
    for (int step = 0; step < 2; ++step) trainer.step();
    hashes[threads - 1] = trainer.model().parameters().hash();
  }
  if (hashes[0] != hashes[1]) broken.push_back("two threads train other weights than one");
}

}  // namespace

std::vector<std::string> broken_invariants(const Architecture& a, const NamedValues& parameters) {
  const std::unique_ptr<Model> model = make_model(a, parameters);
  const Numbers expected = compute(*model, a, a.batch, {});
  Broken broken;
  check_padding_tokens(*model, a, expected, broken);
  check_padding(*model, a, expected, broken);
  check_rows(*model, a, expected, broken);
  check_hooks(*model, a, expected, broken);
  check_kept_weights(a, broken);
  check_plan(*model, a, broken);
  check_threads(a, broken);
  return broken;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
