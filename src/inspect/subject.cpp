#include "thimble/inspect/subject.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "inspect/require_heads.h"
#include "thimble/core/error.h"
#include "thimble/inspect/measure_effects.h"
#include "thimble/kernels/cross_entropy.h"
#include "thimble/model/finite.h"
#include "thimble/train/checkpoint.h"
#include "thimble/train/cost.h"
#include "thimble/train/trainer.h"

namespace thimble::inline THIMBLE_PRECISION {

Subject::Subject(const Config& config, Split split, std::int64_t sequences)
    : config_(config),
      split_(split),
      dataset_(make_dataset(config)),
      model_(make_model(config.model, dataset_)),
      encoder_(dynamic_cast<const Transformer*>(model_.get())),
      pair_(dynamic_cast<const EncoderDecoder*>(model_.get())),
      transposes_(model_->parameters()),
      pool_(config.train.threads),
      workers_(static_cast<std::size_t>(pool_.threads())),
      sequences_(dataset_.size(split) > 0 ? std::min(sequences, dataset_.size(split)) : sequences) {
  dataset_.require_rows(split);
  require<DataError>(
      sequences_ > 0 && (split == Split::train || dataset_.size(split) > 0),
      "inspect: no sequences of the {} split to look at; ask for one at least, and let data.{} be "
      "above 0",
      split_name(split), split_name(split));
  require_heads(config.model);
  model_->init(config.train.seed);
  const std::int64_t at_once = micro_batch(dataset_.length() + dataset_.source_length());
  ProgressCounter progress("reading sequences", static_cast<double>(sequences_));
  for (std::int64_t first = 0; first < sequences_; first += at_once) {
    Chunk& chunk = chunks_.emplace_back();
    chunk.first = first;
    dataset_.fill(split, first, std::min(at_once, sequences_ - first), chunk.batch);
    progress.advance(static_cast<double>(chunk.batch.sequences));
  }
}

Subject::Subject(const ModelSource& source, Split split, std::int64_t sequences)
    : Subject(source.config, split, sequences) {
  load_weights(source.weights, model_->parameters());
}

void Subject::refresh_transposes() {
  pool_.run(transposes_.count(), [&](std::int64_t i, int) { transposes_.refresh(i); });
}

Tape& Subject::rewound_tape(Worker& worker, Tape::Mode mode) {
  const bool training = mode == Tape::Mode::training;
  if (training) worker.gradients.resize(model_->parameters().size());
  Tape& tape = training ? worker.training : worker.inference;
  tape.bind(model_->parameters(), training ? std::span<Real>(worker.gradients) : std::span<Real>(),
            &transposes_);
  tape.rewind();
  return tape;
}

std::optional<std::size_t> Subject::stack_layer(std::size_t attention) const {
  if (encoder_ == nullptr && pair_ == nullptr) return std::nullopt;
  return static_cast<std::size_t>(model_->attention_layers()[attention].block);
}

std::size_t Subject::stack_layers() const {
  if (encoder_ == nullptr && pair_ == nullptr) return 0;
  return static_cast<std::size_t>(config_.model.layers * (pair_ != nullptr ? 2 : 1));
}

double Subject::share_of_layer(std::size_t layer) const {
  return 1 - static_cast<double>(layer) / static_cast<double>(stack_layers());
}

double Subject::share_from(std::size_t attention) const {
  const std::optional<std::size_t> layer = stack_layer(attention);
  return layer ? share_of_layer(*layer) : 1;
}

LayerInput Subject::layer_input(std::size_t layer, std::int64_t sequences) const {
  const bool of_decoder = pair_ != nullptr && std::cmp_greater_equal(layer, config_.model.layers);
  const std::int64_t source = dataset_.source_length(), width = config_.model.d_model;
  LayerInput input{.layer = layer, .values = {}, .memory = {}};
  input.values = Tensor({sequences, pair_ != nullptr && !of_decoder ? source : dataset_.length(), width});
  if (of_decoder) input.memory.emplace(Shape{sequences, source, width});
  return input;
}

std::multimap<Site, Tensor*> Subject::input_sites(LayerInput& input) const {
  std::multimap<Site, Tensor*> sites;
  sites.emplace(pair_ != nullptr ? pair_->input_site(input.layer) : encoder_->input_site(input.layer),
                &input.values);
  if (input.memory) sites.emplace(Site{SiteKind::encoder_output}, &*input.memory);
  return sites;
}

// That many passes over the chunk are done.
void Subject::advance(double passes, const Chunk& chunk) const {
  if (progress_ == nullptr) return;
  progress_->advance(passes * static_cast<double>(chunk.batch.sequences) / static_cast<double>(sequences_));
}

Outcomes Subject::run(const MakeHooks& make_hooks, Tape::Mode mode, const LayerInput* from) {
  refresh_transposes();
  Outcomes outcomes{.total = {}, .sequences = std::vector<Outcome>(static_cast<std::size_t>(sequences_))};
  std::vector<Totals> totals(chunks_.size());
  pool_.run(static_cast<std::int64_t>(chunks_.size()), [&](std::int64_t i, int thread) {
    const auto index = static_cast<std::size_t>(i);
    const std::unique_ptr<ChunkHooks> hooks = make_hooks ? make_hooks() : nullptr;
    Tape& tape = rewound_tape(workers_[static_cast<std::size_t>(thread)], mode);
    const Chunk& chunk = chunks_[index];
    totals[index] = run_chunk(chunk, chunk.first, hooks.get(), tape, from, outcomes.sequences);
    advance(pass_cost(mode) * (from != nullptr ? share_of_layer(from->layer) : 1), chunk);
  });
  outcomes.total = mean(totals);
  return outcomes;
}

Baseline Subject::mean(std::span<const Totals> chunks) const {
  Totals all;
  for (const Totals& chunk : chunks) {
    all.loss += chunk.loss;
    all.labelled += chunk.labelled;
    all.correct += chunk.correct;
    all.correct_sequences += chunk.correct_sequences;
  }
  const auto labelled = static_cast<double>(std::max<std::int64_t>(1, all.labelled));
  const Baseline mean{
      .loss = all.loss / labelled,
      .accuracy = static_cast<double>(all.correct) / labelled,
      .sequence_accuracy = static_cast<double>(all.correct_sequences) / static_cast<double>(sequences_),
      .sequences = sequences_};
  return mean;
}

namespace {

// The hooks of a pass, which also keeps the inputs of the layers after the one that it starts at.
class SeriesHooks : public ChunkHooks {
 public:
  SeriesHooks(std::unique_ptr<ChunkHooks> hooks, const Capture::Sites& sites)
      : hooks_(std::move(hooks)), inputs_(sites) {}

  void begin(const Chunk& chunk) override { hooks_->begin(chunk); }
  bool replace(Site site, const Shape& shape, MatrixView value) override {
    return hooks_->replace(site, shape, value);
  }
  void observe(Site site, const Shape& shape, ConstMatrixView value) override {
    inputs_.observe(site, shape, value);
  }

 private:
  const std::unique_ptr<ChunkHooks> hooks_;
  Capture inputs_;  // has no beginning, so that it counts sequences from that of the chunk
};

}  // namespace

std::vector<Baseline> Subject::run_series(std::span<const std::size_t> attentions,
                                          const MakeSeriesHooks& make_hooks) {
  refresh_transposes();
  std::vector<std::vector<Totals>> totals(attentions.size(), std::vector<Totals>(chunks_.size()));
  pool_.run(static_cast<std::int64_t>(chunks_.size()), [&](std::int64_t i, int thread) {
    const Chunk& chunk = chunks_[static_cast<std::size_t>(i)];
    std::vector<Outcome> outcomes(static_cast<std::size_t>(chunk.batch.sequences));
    std::vector<LayerInput> inputs(stack_layers());
    Capture::Sites sites;
    for (std::size_t l = 0; l < inputs.size(); ++l) {
      inputs[l] = layer_input(l, chunk.batch.sequences);
      sites.merge(input_sites(inputs[l]));
    }
    for (std::size_t k = 0; k < attentions.size(); ++k) {
      const std::optional<std::size_t> layer = k > 0 ? stack_layer(attentions[k]) : std::nullopt;
      SeriesHooks hooks(make_hooks(k), sites);
      Tape& tape = rewound_tape(workers_[static_cast<std::size_t>(thread)], Tape::Mode::inference);
      totals[k][static_cast<std::size_t>(i)] =
          run_chunk(chunk, 0, &hooks, tape, layer ? &inputs[*layer] : nullptr, outcomes);
      advance(share_from(attentions[k]), chunk);
    }
  });
  std::vector<Baseline> means;
  for (const std::vector<Totals>& chunks : totals) means.push_back(mean(chunks));
  return means;
}

Var Subject::logits(const Chunk& chunk, std::int64_t first, ChunkHooks* hooks, Tape& tape,
                    const LayerInput* from) const {
  const Batch& batch = chunk.batch;
  const Pass pass{.hooks = hooks};
  if (from == nullptr) return labelled_logits(*model_, tape, batch, pass);
  const auto of_chunk = [&](const Tensor& all) {
    const std::int64_t time = all.shape()[1];
    Tensor x({batch.sequences, time, all.shape()[2]});
    std::copy_n(all.matrix().row(first * time), x.matrix().elements(), x.matrix().data);
    return tape.constant(x);
  };
  const Var x = of_chunk(from->values);
  if (encoder_ != nullptr)
    return encoder_->from_layer(from->layer, x, batch.lengths, pass, labelled_rows(batch));
  ModelInput input = model_input(batch);
  input.rows = labelled_rows(batch);
  return pair_->from_layer(from->layer, x, from->memory ? of_chunk(*from->memory) : Var(), input, pass);
}

Subject::Totals Subject::run_chunk(const Chunk& chunk, std::int64_t first_sequence, ChunkHooks* hooks,
                                   Tape& tape, const LayerInput* from, std::span<Outcome> outcomes) const {
  const Batch& batch = chunk.batch;
  if (hooks != nullptr) hooks->begin(chunk);
  const Var scores = logits(chunk, first_sequence, hooks, tape, from);
  const Var loss = cross_entropy(scores, batch.row_labels, {.normalizer = 1});
  Totals totals{.loss = static_cast<double>(loss.item()), .labelled = std::ssize(batch.rows)};
  if (!std::isfinite(totals.loss))
    require_finite(
        tape, config_.model,
        fmt::format("inspect: the loss on the {} split is {}", split_name(split_), std::abs(totals.loss)));
  const MatrixView slope = tape.scratch(scores.value().rows, scores.value().cols);
  const auto rows_per_sequence = std::ssize(batch.labels) / batch.sequences;
  auto row = batch.rows.begin();
  for (std::int64_t sequence = 0; sequence < batch.sequences; ++sequence) {
    const auto first = row - batch.rows.begin();
    row = std::find_if(row, batch.rows.end(), [&](auto r) { return r / rows_per_sequence != sequence; });
    const auto count = row - batch.rows.begin() - first;
    const auto labels =
        std::span(batch.row_labels).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    const ConstMatrixView z = scores.value().row_block(first, count);
    Outcome& outcome = outcomes[static_cast<std::size_t>(first_sequence + sequence)];
    outcome = {.loss = kernels::cross_entropy_forward(slope.row_block(first, count), z, labels, 0, 1),
               .labelled = count,
               .correct = kernels::count_correct(z, labels)};
    totals.correct += outcome.correct;
    totals.correct_sequences += count > 0 && outcome.correct == count;
  }
  if (tape.mode() == Tape::Mode::training) tape.backward(loss);
  if (hooks != nullptr) hooks->end();
  return totals;
}

void Subject::watch(ChunkHooks& hooks) {
  refresh_transposes();
  for (const Chunk& chunk : chunks_) {
    const Batch& batch = chunk.batch;
    hooks.begin(chunk);
    Tape& tape = rewound_tape(workers_.front(), Tape::Mode::inference);
    (*model_)(tape, model_input(batch), {.hooks = &hooks});
    hooks.end();
    advance(watch_cost(), chunk);
  }
}

}  // namespace thimble::inline THIMBLE_PRECISION
