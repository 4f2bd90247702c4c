#include "thimble/inspect/subject.h"

#include <algorithm>
#include <cmath>

#include "inspect/require_heads.h"
#include "thimble/core/error.h"
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
      attentions_(model_->attentions()),
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
  for (std::int64_t first = 0; first < sequences_; first += at_once) {
    Chunk& chunk = chunks_.emplace_back();
    chunk.first = first;
    dataset_.fill(split, first, std::min(at_once, sequences_ - first), chunk.batch);
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

Outcomes Subject::run(const MakeHooks& make_hooks, Tape::Mode mode, const LayerInput* from) {
  refresh_transposes();
  Outcomes outcomes{.total = {}, .sequences = std::vector<Outcome>(static_cast<std::size_t>(sequences_))};
  std::vector<Totals> totals(chunks_.size());
  pool_.run(static_cast<std::int64_t>(chunks_.size()), [&](std::int64_t i, int thread) {
    const auto index = static_cast<std::size_t>(i);
    const std::unique_ptr<ChunkHooks> hooks = make_hooks ? make_hooks() : nullptr;
    Tape& tape = rewound_tape(workers_[static_cast<std::size_t>(thread)], mode);
    totals[index] = run_chunk(chunks_[index], hooks.get(), tape, from, outcomes.sequences);
  });
  Totals all;
  for (const Totals& chunk : totals) {
    all.loss += chunk.loss;
    all.labelled += chunk.labelled;
    all.correct += chunk.correct;
    all.correct_sequences += chunk.correct_sequences;
  }
  const auto labelled = static_cast<double>(std::max<std::int64_t>(1, all.labelled));
  outcomes.total = {
      .loss = all.loss / labelled,
      .accuracy = static_cast<double>(all.correct) / labelled,
      .sequence_accuracy = static_cast<double>(all.correct_sequences) / static_cast<double>(sequences_),
      .sequences = sequences_};
  return outcomes;
}

Var Subject::logits(const Chunk& chunk, ChunkHooks* hooks, Tape& tape, const LayerInput* from) const {
  const Batch& batch = chunk.batch;
  if (from == nullptr) return labelled_logits(*model_, tape, batch, {.hooks = hooks});
  Tensor x({batch.sequences, batch.length, model_->config().d_model});
  std::copy_n(from->values.matrix().row(chunk.first * batch.length), x.matrix().elements(), x.matrix().data);
  return encoder_->from_layer(from->layer, tape.constant(x), batch.lengths, {.hooks = hooks},
                              labelled_rows(batch));
}

Subject::Totals Subject::run_chunk(const Chunk& chunk, ChunkHooks* hooks, Tape& tape, const LayerInput* from,
                                   std::vector<Outcome>& outcomes) const {
  const Batch& batch = chunk.batch;
  if (hooks != nullptr) hooks->begin(chunk);
  const Var scores = logits(chunk, hooks, tape, from);
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
    Outcome& outcome = outcomes[static_cast<std::size_t>(chunk.first + sequence)];
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
  }
}

}  // namespace thimble::inline THIMBLE_PRECISION
