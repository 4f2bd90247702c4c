#include "train/step/trainer.h"

#include <algorithm>
#include <cmath>

#include "engine/kernels/arithmetic.h"
#include "engine/kernels/optimizer.h"
#include "engine/kernels/products/backend.h"
#include "engine/model/finite.h"
#include "thimble/engine/error.h"
#include "thimble/engine/schedule.h"
#include "train/files/hash.h"
#include "train/files/version.h"
#include "train/step/cost.h"
#include "train/step/micro_batch.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Trainer::Trainer(const OpenConfig& config, Ranks& ranks)
    : config_(config),
      ranks_(ranks),
      evaluator_(config),
      optimizer_(config.train.optimizer, model().parameters()),
      batches_(dataset(), config.train),
      gradients_(ranks.gradient_sum(
          {static_cast<std::size_t>(config.train.shards), optimizer_.segments(), model().parameters()})),
      shard_sums_(static_cast<std::size_t>(config.train.shards)),
      workers_(static_cast<std::size_t>(threads())),
      segment_squares_(optimizer_.segments().size()) {
  require_equal_ranks();
  if (gradients_->watches()) complete_ = [this](Parameter p) { gradients_->complete(p); };
  // Any worker may run any shard, so every worker runs the largest micro-batch now, and allocates nothing
  // later.
  for (Worker& worker : workers_) warm_up(worker);
}

void Trainer::warm_up(Worker& worker) {
  const Batch largest = largest_training_batch(config_);
  const MicroBatch first{.shard = first_shard(), .first = 0, .count = largest.sequences, .is_last = false};
  // Twice, as the tape merges its memory into one block when it is rewound.
  for (int run = 0; run < 2; ++run) {
    worker.batch = largest;
    run_batch(0, first, worker);
    if (dataset().source().step_order() == StepOrder::drawn) run_micro_batch(0, first, worker);
  }
  worker.tape.rewind();
  const ExampleSize longest = dataset().source().longest();
  const auto rows = static_cast<std::size_t>(micro_batch(1)),
             cells = std::max(rows, static_cast<std::size_t>(dataset().length() + dataset().source_length()));
  Batch& batch = worker.batch;
  for (auto* each : {&batch.tokens, &batch.sources, &batch.labels, &batch.rows, &batch.row_labels,
                     &batch.countable_labels})
    each->reserve(std::max(cells, largest.tokens.size()));
  for (auto* each : {&batch.lengths, &batch.source_lengths})
    each->reserve(std::max(rows, largest.lengths.size()));
  batch.step_rows.reserve(static_cast<std::size_t>(config_.train.batch));
  batch.example.input.reserve(static_cast<std::size_t>(longest.input));
  batch.example.target.reserve(static_cast<std::size_t>(longest.target));
}

void Trainer::require_equal_ranks() {
  if (ranks_.size() == 1) return;
  Config config = config_.values();
  config.train.threads = 0;
  DataRecord data = record_of(config_);
  for (DataFile& file : data.files) file.path.clear();
  ranks_.require_equal<ConfigError>(
      {{"version of thimble", std::string(version())},
       {"arithmetic", uses_openblas() ? "openblas" : std::string(kernels::arithmetic())},
       {"hash of the config", hash_digits(to_yaml(config))},
       {"hash of the data", hash_digits(json_text(to_json(data)))},
       {"hash of the initial weights", model().parameters().hash()}},
      "start the same command, on the same files, for all ranks");
}

void Trainer::require_equal_weights() {
  if (ranks_.size() == 1) return;
  ranks_.require_equal<Error>(
      {{"hash of the weights", model().parameters().hash()}},
      "a rank or the network has computed or copied them wrongly; resume from the last checkpoint");
}

void Trainer::distribute_state() {
  if (ranks_.size() == 1) return;
  std::int64_t steps = optimizer_.steps();
  ranks_.broadcast(std::span(&steps, 1));
  optimizer_.set_steps(steps);
  ranks_.broadcast(model().parameters().values());
  for (const Optimizer::Moment& moment : optimizer_.moments()) ranks_.broadcast(moment.values);
}

void Trainer::start_profile() {
  profiling_ = true;
  for (Worker& worker : workers_) worker.tape.set_profile(&worker.profile.ops);
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

ForwardOptions Trainer::training_options(std::int64_t step, std::int64_t first_sample) const {
  return {.training = true,
          .seed = config_.train.seed,
          .step = static_cast<std::uint32_t>(step),
          .first_sample = static_cast<std::uint32_t>(first_sample),
          .hooks = nullptr};
}

Var Trainer::forward(Tape& tape, const Batch& batch, const ForwardOptions& options, EvalSums& sums) const {
  const Var logits = model()(tape, labeled_input(batch), options);
  tape.set_layer("loss");
  return add_loss(logits, batch, static_cast<Real>(config_.train.label_smoothing), sums);
}

void Trainer::run_micro_batch(std::int64_t step, const MicroBatch& batch, Worker& worker) {
  phase(worker, "data");
  batches_.fill(batch, worker.batch);
  run_batch(step, batch, worker);
}

void Trainer::run_batch(std::int64_t step, const MicroBatch& batch, Worker& worker) {
  const auto index = static_cast<std::size_t>(batch.shard);
  worker.tape.bind(model().parameters(), gradients_->of_shard(index), &evaluator_.packed_weights());
  phase(worker, "forward");
  worker.tape.rewind();
  const Var loss =
      forward(worker.tape, worker.batch, training_options(step, batch.first), shard_sums_[index]);
  phase(worker, "backward");
  worker.tape.backward(loss, 1, Tape::RetainGrads::leaves,
                       batch.is_last ? complete_ : Tape::PostAccumulateGradHook());
  phase(worker, {});
}

void Trainer::run_shard(std::int64_t step, std::int64_t shard, Worker& worker) {
  const auto index = static_cast<std::size_t>(shard);
  shard_sums_[index] = {};
  std::ranges::fill(gradients_->of_shard(index), Real{0});
  for (const MicroBatch& batch : batches_.of_shard(shard)) run_micro_batch(step, batch, worker);
}

void Trainer::pack_weights() {
  run(evaluator_.packed_weights().count(), [&](std::int64_t i, int thread) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    phase(worker, "packing");
    evaluator_.packed_weights().refresh(i);
    phase(worker, {});
  });
}

template <class F>
void Trainer::each_segment(std::string_view name, const Range& range, const F& f) {
  run(static_cast<std::int64_t>(range.size()), [&](std::int64_t i, int thread) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    phase(worker, name);
    const std::size_t index = range.first + static_cast<std::size_t>(i);
    f(optimizer_.segments()[index], index);
    phase(worker, {});
  });
}

double Trainer::reduce_gradients() {
  communicate([&] { gradients_->exchange(); });
  each_segment("gradients", gradients_->segments(), [&](const auto& segment, std::size_t i) {
    segment_squares_[i] = kernels::sum_of_squares(gradients_->sum(segment));
  });
  communicate([&] {
    gradients_->share(segment_squares_);
    ranks_.all_gather(std::span(shard_sums_));
  });
  double sum = 0;
  for (const double square : segment_squares_) sum += square;
  return sum;
}

template <class F>
void Trainer::communicate(const F& f) {
  if (ranks_.size() == 1) return;
  phase(workers_.front(), "communication");
  f();
  phase(workers_.front(), {});
}

StepReport Trainer::step() {
  compute(shards());
  return update();
}

void Trainer::compute(const Range& shards) {
  const std::int64_t step = optimizer_.steps(), first = static_cast<std::int64_t>(shards.first);
  gradients_->start();
  batches_.start(step);
  pack_weights();
  run(static_cast<std::int64_t>(shards.size()), [&](std::int64_t i, int thread) {
    run_shard(step, first + i, workers_[static_cast<std::size_t>(thread)]);
  });
}

StepReport Trainer::update() {
  const std::int64_t step = optimizer_.steps();
  const double squares = reduce_gradients();
  EvalSums sums;
  for (const EvalSums& shard : shard_sums_) sums.add(shard);
  const double labeled = sums.labels();
  const double loss = sums.loss / labeled;
  const double norm = std::sqrt(squares) / labeled;
  if (!std::isfinite(loss) || !std::isfinite(norm)) throw_non_finite(step, loss, norm);

  const double rate = learning_rate(step);
  optimizer_.begin_step(rate, clip_factor(norm, config_.train.clip_norm) / labeled);
  const std::span<Real> parameters = model().parameters().values();
  each_segment("optimizer", {0, segment_squares_.size()}, [&](const auto& segment, std::size_t) {
    optimizer_.update(segment, parameters, gradients());
  });
  return {.step = step + 1,
          .loss = loss,
          .accuracy = static_cast<double>(sums.correct) / labeled,
          .sequence_accuracy =
              static_cast<double>(sums.correct_sequences) / static_cast<double>(config_.train.batch),
          .learning_rate = rate,
          .gradient_norm = norm,
          .sequences = config_.train.batch,
          .labels = sums.labeled};
}

double Trainer::learning_rate(std::int64_t step) const {
  const TrainConfig& train = config_.train;
  return train.optimizer.lr * schedule_factor(train.schedule, train.optimizer.lr, step, train.steps);
}

// Runs the step again, micro-batch by micro-batch, to find the op of the first number that is not finite.
void Trainer::throw_non_finite(std::int64_t step, double loss, double norm) {
  const std::string where =
      fmt::format("step {}: the loss is {}, the gradient norm {}, the learning rate {:g}", step + 1,
                  std::abs(loss), std::abs(norm), learning_rate(step));
  Worker& worker = workers_.front();
  const std::span<Real> gradients = gradients_->of_shard(static_cast<std::size_t>(first_shard()));
  const auto check = [&](const MicroBatch& batch) {
    std::ranges::fill(gradients, Real{0});
    worker.tape.bind(model().parameters(), gradients);
    batches_.fill(batch, worker.batch);
    worker.tape.rewind();
    EvalSums sums;
    const Var sum = forward(worker.tape, worker.batch, training_options(step, batch.first), sums);
    const char* kind = "value";
    Tape::NonFinite non_finite = worker.tape.first_non_finite_value();
    if (!non_finite) {
      kind = "gradient";
      worker.tape.backward(sum);
      non_finite = worker.tape.first_non_finite_gradient();
    }
    if (non_finite) {
      throw NumericError(fmt::format(
          "{}; the first {} that is not finite is in {}; lower the learning rate or set train.clip_norm",
          where, kind, describe(non_finite, config_.model)));
    }
  };
  for (std::int64_t shard = 0; shard < config_.train.shards; ++shard)
    std::ranges::for_each(batches_.of_shard(shard), check);
  // All micro-batches are finite, so the sum of their gradients or of its squares overflows.
  const auto bad =
      std::ranges::find_if(segment_squares_, [](double square) { return !std::isfinite(square); });
  const auto& segment = optimizer_.segments()[static_cast<std::size_t>(bad - segment_squares_.begin())];
  const auto entry = std::ranges::find_if(
      model().parameters().entries(), [&](const auto& e) { return segment.offset < e.offset + e.size(); });
  throw NumericError(fmt::format(
      "{}; the gradients of the whole batch overflow in op gradient_norm, layer {}; lower the learning rate or set train.clip_norm",
      where, entry->name));
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
