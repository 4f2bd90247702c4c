#include "thimble/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "thimble/core/error.h"
#include "thimble/kernels/elementwise.h"
#include "thimble/kernels/optimizer.h"
#include "thimble/model/finite.h"
#include "thimble/optim/schedule.h"
#include "thimble/train/cost.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

MatrixView as_row(std::span<Real> x) {
  const auto n = static_cast<std::int64_t>(x.size());
  return {x.data(), 1, n, n};
}

}  // namespace

Trainer::Trainer(const Config& config)
    : config_(config),
      evaluator_(config),
      optimizer_(config.train.optimizer, model().parameters()),
      micro_batches_(micro_batches_of_shard(config.train, dataset().length() + dataset().source_length())),
      shards_(static_cast<std::size_t>(config.train.shards)),
      workers_(static_cast<std::size_t>(threads())),
      segment_squares_(optimizer_.segments().size()) {
  for (Shard& shard : shards_) shard.gradients.resize(model().parameters().size());
  // Any worker may run any shard, so every worker runs the largest micro-batch now, and allocates nothing
  // later. It runs it twice, as the tape merges its memory into one block when it is rewound.
  const std::int64_t largest =
      largest_micro_batch(config.train, dataset().length() + dataset().source_length());
  for (Worker& worker : workers_) {
    for (int run = 0; run < 2; ++run) run_micro_batch(0, 0, largest, shards_.front(), worker);
    worker.tape.rewind();
  }
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

template <class F>
void Trainer::for_micro_batches(std::int64_t shard, const F& f) const {
  const auto shard_begin = [&](std::int64_t i) { return config_.train.batch * i / config_.train.shards; };
  const std::int64_t begin = shard_begin(shard), size = shard_begin(shard + 1) - begin;
  const std::int64_t parts = std::min(micro_batches_, size);
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t first = size * i / parts, end = size * (i + 1) / parts;
    f(begin + first, end - first);
  }
}

Var Trainer::forward(Tape& tape, const Batch& batch, const ForwardOptions& options, EvalSums& sums) const {
  const Var logits = model()(tape, labeled_input(batch), options);
  tape.set_layer("loss");
  return add_loss(logits, batch, static_cast<Real>(config_.train.label_smoothing), sums);
}

void Trainer::run_micro_batch(std::int64_t step, std::int64_t first, std::int64_t count, Shard& shard,
                              Worker& worker) {
  worker.tape.bind(model().parameters(), shard.gradients, &evaluator_.packed_weights());
  phase(worker, "data");
  dataset().fill_step(step, config_.train.batch, first, count, worker.batch);
  phase(worker, "forward");
  worker.tape.rewind();
  const Var loss = forward(worker.tape, worker.batch, training_options(step, first), shard.sums);
  phase(worker, "backward");
  worker.tape.backward(loss, 1, Tape::RetainGrads::leaves);
  phase(worker, {});
}

void Trainer::run_shard(std::int64_t step, std::int64_t index, Worker& worker) {
  Shard& shard = shards_[static_cast<std::size_t>(index)];
  shard.sums = {};
  std::ranges::fill(shard.gradients, Real{0});
  for_micro_batches(index, [&](std::int64_t first, std::int64_t count) {
    run_micro_batch(step, first, count, shard, worker);
  });
}

void Trainer::pack_weights() {
  run(evaluator_.packed_weights().count(), [&](std::int64_t i, int thread) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    phase(worker, "packing");
    evaluator_.packed_weights().refresh(i);
    phase(worker, {});
  });
}

double Trainer::reduce_gradients() {
  const auto& segments = optimizer_.segments();
  run(static_cast<std::int64_t>(segments.size()), [&](std::int64_t i, int thread) {
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
  pack_weights();
  run(config_.train.shards, [&](std::int64_t shard, int thread) {
    run_shard(step, shard, workers_[static_cast<std::size_t>(thread)]);
  });
  EvalSums sums;
  for (const Shard& shard : shards_) sums.add(shard.sums);
  const double labeled = sums.labels();
  const double loss = sums.loss / labeled;
  const double norm = std::sqrt(reduce_gradients()) / labeled;
  if (!std::isfinite(loss) || !std::isfinite(norm)) throw_non_finite(step, loss, norm);

  const double rate = learning_rate(step);
  optimizer_.begin_step(rate, clip_factor(norm, config_.train.clip_norm) / labeled);
  const auto& segments = optimizer_.segments();
  run(static_cast<std::int64_t>(segments.size()), [&](std::int64_t i, int thread) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    phase(worker, "optimizer");
    optimizer_.update(segments[static_cast<std::size_t>(i)], model().parameters().values(),
                      shards_.front().gradients);
    phase(worker, {});
  });
  return {.step = step + 1,
          .loss = loss,
          .accuracy = static_cast<double>(sums.correct) / labeled,
          .sequence_accuracy =
              static_cast<double>(sums.correct_sequences) / static_cast<double>(config_.train.batch),
          .learning_rate = rate,
          .gradient_norm = norm};
}

double Trainer::learning_rate(std::int64_t step) const {
  return config_.train.optimizer.lr * schedule_factor(config_.train.schedule, step, config_.train.steps);
}

// Runs the step again, micro-batch by micro-batch, to find the op of the first number that is not finite.
void Trainer::throw_non_finite(std::int64_t step, double loss, double norm) {
  const std::string where =
      fmt::format("step {}: the loss is {}, the gradient norm {}, the learning rate {:g}", step + 1,
                  std::abs(loss), std::abs(norm), learning_rate(step));
  Worker& worker = workers_.front();
  const auto check = [&](std::int64_t first, std::int64_t count) {
    std::ranges::fill(shards_.front().gradients, Real{0});
    worker.tape.bind(model().parameters(), shards_.front().gradients);
    dataset().fill_step(step, config_.train.batch, first, count, worker.batch);
    worker.tape.rewind();
    EvalSums sums;
    const Var sum = forward(worker.tape, worker.batch, training_options(step, first), sums);
    const char* kind = "value";
    Tape::NonFinite non_finite = worker.tape.first_non_finite_value();
    if (!non_finite) {
      kind = "gradient";
      worker.tape.backward(sum);
      non_finite = worker.tape.first_non_finite_gradient();
    }
    if (non_finite) {
      throw NumericError(
          fmt::format("{}; the first {} that is not finite is in {}; lower the learning rate or set "
                      "train.clip_norm",
                      where, kind, describe(non_finite, config_.model)));
    }
  };
  for (std::int64_t shard = 0; shard < config_.train.shards; ++shard) for_micro_batches(shard, check);
  // All micro-batches are finite, so the sum of their gradients or of its squares overflows.
  const auto bad =
      std::ranges::find_if(segment_squares_, [](double square) { return !std::isfinite(square); });
  const auto& segment = optimizer_.segments()[static_cast<std::size_t>(bad - segment_squares_.begin())];
  const auto entry = std::ranges::find_if(
      model().parameters().entries(), [&](const auto& e) { return segment.offset < e.offset + e.size(); });
  throw NumericError(
      fmt::format("{}; the gradients of the whole batch overflow in op gradient_norm, layer {}; lower the "
                  "learning rate or set train.clip_norm",
                  where, entry->name));
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
