#include "thimble/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "thimble/core/error.h"
#include "thimble/kernels/cross_entropy.h"
#include "thimble/kernels/elementwise.h"
#include "thimble/kernels/optimizer.h"
#include "thimble/model/finite.h"
#include "thimble/model/make_model.h"
#include "thimble/optim/schedule.h"
#include "thimble/train/cost.h"

namespace thimble::inline THIMBLE_PRECISION {

namespace {

MatrixView as_row(std::span<Real> x) {
  const auto n = static_cast<std::int64_t>(x.size());
  return {x.data(), 1, n, n};
}

}  // namespace

Dataset make_dataset(const Config& config) {
  return Dataset(config.task, config.data, layout_of(config.model), config.train.seed);
}

Trainer::Trainer(const Config& config, bool trains)
    : config_(config),
      dataset_(make_dataset(config)),
      model_(make_model(config.model, dataset_)),
      transposes_(model_->parameters()),
      optimizer_(config.train.optimizer, model_->parameters()),
      pool_(config.train.threads),
      micro_batch_(micro_batch(dataset_.length() + dataset_.source_length())),
      shards_(static_cast<std::size_t>(config.train.shards)),
      workers_(static_cast<std::size_t>(pool_.threads())),
      segment_squares_(optimizer_.segments().size()) {
  model_->init(config.train.seed);
  if (!trains) return;
  for (Shard& shard : shards_) shard.gradients.resize(model_->parameters().size());
  // Which thread runs which shard is chance: every worker sees the largest micro-batch now, twice, since the
  // tape's memory becomes one block only when it is rewound, and allocates nothing later.
  const std::int64_t largest =
      largest_micro_batch(config.train, dataset_.length() + dataset_.source_length());
  for (Worker& worker : workers_) {
    for (int run = 0; run < 2; ++run) run_micro_batch(0, 0, largest, shards_.front(), worker);
    worker.training.rewind();
  }
}

void Trainer::Totals::add(const Totals& other) {
  loss += other.loss;
  labelled += other.labelled;
  correct += other.correct;
  correct_sequences += other.correct_sequences;
  written += other.written;
  usual += other.usual;
  correct_squared += other.correct_squared;
  correct_labelled += other.correct_labelled;
  labelled_squared += other.labelled_squared;
}

void Trainer::start_profile() {
  profiling_ = true;
  for (Worker& worker : workers_) worker.training.set_profile(&worker.profile.ops);
}

Trainer::StepProfile Trainer::profile() const {
  StepProfile all;
  for (const Worker& worker : workers_) {
    all.phases.add(worker.profile.phases);
    all.ops.forward.add(worker.profile.ops.forward);
    all.ops.backward.add(worker.profile.ops.backward);
  }
  return all;
}

void Trainer::phase(Worker& worker, std::string_view name) const {
  if (!profiling_) return;
  worker.profile.phases.stop();
  if (!name.empty()) worker.profile.phases.start(name);
}

Pass Trainer::training_pass(std::int64_t step, std::int64_t first_sample) const {
  return {.training = true,
          .seed = config_.train.seed,
          .step = static_cast<std::uint32_t>(step),
          .first_sample = static_cast<std::uint32_t>(first_sample),
          .hooks = nullptr};
}

std::int64_t Trainer::shard_begin(std::int64_t shard) const {
  return config_.train.batch * shard / config_.train.shards;
}

std::span<const std::int32_t> labelled_rows(const Batch& batch) {
  const bool all = batch.rows.size() == batch.labels.size();
  return all ? std::span<const std::int32_t>() : batch.rows;
}

ModelInput model_input(const Batch& batch) {
  return {.tokens = batch.tokens,
          .length = batch.length,
          .lengths = batch.lengths,
          .sources = batch.sources,
          .source_length = batch.source_length,
          .source_lengths = batch.source_lengths};
}

Var labelled_logits(const Model& model, Tape& tape, const Batch& batch, const Pass& pass) {
  ModelInput input = model_input(batch);
  input.rows = labelled_rows(batch);
  return model(tape, input, pass);
}

std::unique_ptr<Model> make_model(const ModelConfig& config, const Dataset& data) {
  return make_model(config, ModelSizes{data.vocabulary(), data.length(), data.source_length()});
}

Var Trainer::forward(Tape& tape, const Batch& batch, const Pass& pass, Totals& totals) const {
  const Var logits = labelled_logits(*model_, tape, batch, pass);
  tape.set_layer("loss");
  const Real smoothing = pass.training ? static_cast<Real>(config_.train.label_smoothing) : 0;
  const Var loss = cross_entropy(logits, batch.row_labels, {.smoothing = smoothing, .normalizer = 1});
  totals.loss += static_cast<double>(loss.item());
  totals.labelled += std::ssize(batch.rows);
  const auto rows_per_sequence = std::ssize(batch.labels) / batch.sequences;
  for (std::int64_t first = 0, last = 0; first < std::ssize(batch.rows); first = last) {
    const auto sequence = batch.rows[static_cast<std::size_t>(first)] / rows_per_sequence;
    while (last < std::ssize(batch.rows) &&
           batch.rows[static_cast<std::size_t>(last)] / rows_per_sequence == sequence)
      ++last;
    const auto labels = std::span(batch.row_labels)
                            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
    const auto correct = kernels::count_correct(logits.value().row_block(first, last - first), labels);
    totals.correct += correct;
    totals.correct_sequences += correct == last - first;
    totals.correct_squared += correct * correct;
    totals.correct_labelled += correct * (last - first);
    totals.labelled_squared += (last - first) * (last - first);
  }
  return loss;
}

void Trainer::run_micro_batch(std::int64_t step, std::int64_t first, std::int64_t count, Shard& shard,
                              Worker& worker) {
  worker.training.bind(model_->parameters(), shard.gradients, &transposes_);
  phase(worker, "data");
  dataset_.fill_step(step, config_.train.batch, first, count, worker.batch);
  phase(worker, "forward");
  worker.training.rewind();
  const Var loss = forward(worker.training, worker.batch, training_pass(step, first), shard.totals);
  phase(worker, "backward");
  worker.training.backward(loss, 1, Tape::Keep::leaves);
  phase(worker, {});
}

void Trainer::run_shard(std::int64_t step, std::int64_t index, Worker& worker) {
  Shard& shard = shards_[static_cast<std::size_t>(index)];
  shard.totals = {};
  std::ranges::fill(shard.gradients, Real{0});
  const std::int64_t end = shard_begin(index + 1);
  for (std::int64_t first = shard_begin(index); first < end; first += micro_batch_) {
    run_micro_batch(step, first, std::min(micro_batch_, end - first), shard, worker);
  }
}

void Trainer::refresh_transposes() {
  pool_.run(transposes_.count(), [&](std::int64_t i, int thread) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    phase(worker, "transposes");
    transposes_.refresh(i);
    phase(worker, {});
  });
}

double Trainer::reduce_gradients() {
  const auto& segments = optimizer_.segments();
  pool_.run(static_cast<std::int64_t>(segments.size()), [&](std::int64_t i, int thread) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    phase(worker, "gradients");
    const auto& segment = segments[static_cast<std::size_t>(i)];
    const auto part = [&](std::size_t shard) {
      return std::span(shards_[shard].gradients).subspan(segment.offset, segment.size);
    };
    for (std::size_t gap = 1; gap < shards_.size(); gap *= 2) {
      for (std::size_t s = 0; s + gap < shards_.size(); s += 2 * gap) {
        kernels::accumulate(as_row(part(s)), as_row(part(s + gap)));
      }
    }
    segment_squares_[static_cast<std::size_t>(i)] = kernels::sum_of_squares(part(0));
    phase(worker, {});
  });
  double sum = 0;
  for (const double square : segment_squares_) sum += square;
  return sum;
}

StepReport Trainer::step() {
  const std::int64_t step = optimizer_.steps();
  refresh_transposes();
  pool_.run(config_.train.shards, [&](std::int64_t shard, int thread) {
    run_shard(step, shard, workers_[static_cast<std::size_t>(thread)]);
  });
  Totals totals;
  for (const Shard& shard : shards_) totals.add(shard.totals);
  const auto labelled = static_cast<double>(std::max<std::int64_t>(1, totals.labelled));
  const double loss = totals.loss / labelled;
  const double norm = std::sqrt(reduce_gradients()) / labelled;
  if (!std::isfinite(loss) || !std::isfinite(norm)) explain(step, loss, norm);

  const double rate = learning_rate(step);
  optimizer_.begin_step(rate, clip_factor(norm, config_.train.clip_norm) / labelled);
  const auto& segments = optimizer_.segments();
  pool_.run(static_cast<std::int64_t>(segments.size()), [&](std::int64_t i, int thread) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    phase(worker, "optimizer");
    optimizer_.update(segments[static_cast<std::size_t>(i)], model_->parameters().values(),
                      shards_.front().gradients);
    phase(worker, {});
  });
  return {.step = step + 1,
          .loss = loss,
          .accuracy = static_cast<double>(totals.correct) / labelled,
          .sequence_accuracy =
              static_cast<double>(totals.correct_sequences) / static_cast<double>(config_.train.batch),
          .learning_rate = rate,
          .gradient_norm = norm};
}

double Trainer::learning_rate(std::int64_t step) const {
  return config_.train.optimizer.lr * schedule_factor(config_.train.schedule, step, config_.train.steps);
}

// Runs the step again, one micro-batch after another, and looks where the first bad number comes from.
void Trainer::explain(std::int64_t step, double loss, double norm) {
  const std::string where =
      fmt::format("step {}: the loss is {}, the gradient norm {}, the learning rate {:g}", step + 1,
                  std::abs(loss), std::abs(norm), learning_rate(step));
  Worker& worker = workers_.front();
  for (std::int64_t first = 0; first < config_.train.batch; first += micro_batch_) {
    std::ranges::fill(shards_.front().gradients, Real{0});
    worker.training.bind(model_->parameters(), shards_.front().gradients);
    dataset_.fill_step(step, config_.train.batch, first, std::min(micro_batch_, config_.train.batch - first),
                       worker.batch);
    worker.training.rewind();
    Totals totals;
    const Var sum = forward(worker.training, worker.batch, training_pass(step, first), totals);
    const char* kind = "value";
    Tape::Culprit culprit = worker.training.first_bad_value();
    if (!culprit) {
      kind = "gradient";
      worker.training.backward(sum);
      culprit = worker.training.first_bad_gradient();
    }
    if (culprit) {
      throw NumericError(
          fmt::format("{}; the first {} that is not finite is in {}; lower the learning rate or set "
                      "train.clip_norm",
                      where, kind, describe(culprit, config_.model)));
    }
  }
  // Every micro-batch is finite, so the sum of their gradients is not, or that of the squares.
  const auto bad =
      std::ranges::find_if(segment_squares_, [](double square) { return !std::isfinite(square); });
  const auto& segment = optimizer_.segments()[static_cast<std::size_t>(bad - segment_squares_.begin())];
  const auto entry = std::ranges::find_if(
      model_->parameters().entries(), [&](const auto& e) { return segment.offset < e.offset + e.size(); });
  throw NumericError(
      fmt::format("{}; the gradients of the whole batch overflow in op gradient_norm, layer {}; lower the "
                  "learning rate or set train.clip_norm",
                  where, entry->name));
}

}  // namespace thimble::inline THIMBLE_PRECISION
