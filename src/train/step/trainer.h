// Trains a model by sharded data-parallel steps.
//
//   batch       train.batch sequences of a step             split      all sequences of train, validation or test
//     shard     a part of it; gradients of its own            chunk    a part of it, for one pass of the evaluator
//       micro-batch   a part of a shard, for one pass
//   gradient    one buffer of all parameters for each shard
//     segment   a part of it that a thread sums and updates at a time
//       bucket  segments that travel together to another rank (addons/cluster)
//
// A batch is cut into a fixed number of shards, and ranks divide the shards among them. Any free thread of a
// rank computes a shard, in micro-batches that fit its cache, into the gradient buffer of the shard; the
// buffers are summed in a fixed binary tree. So every bit of a result depends on the config, and never on the
// number of threads or ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/engine/optimizer.h"
#include "thimble/train/ranks.h"
#include "train/step/evaluator.h"
#include "train/step/gradient_sum.h"
#include "train/step/step_batches.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// A model with its optimizer, shards and threads.
class Trainer {
 public:
  // Builds the model with its initial values. Throws DataError when the task does not suit the output, and
  // ConfigError when ranks are more than shards, or differ in config, data or program. The
  // functions that are marked collective must be called on all ranks.
  explicit Trainer(const OpenConfig& config, Ranks& ranks = one_process());

  // Makes one optimizer step; the first call is step 1. From the third on it allocates nothing. Collective.
  // Throws NumericError when the loss or the gradient is not finite, and then leaves the parameters unchanged.
  StepReport step();

  // The two halves of step(), between which the shards of a batch can come from elsewhere. compute() leaves
  // the gradients and sums of some of this rank's shards, and update() makes the step of all of them; as
  // step().
  void compute(const Range& shards);
  StepReport update();
  std::span<Real> shard_gradients(std::size_t shard) { return gradients_->of_shard(shard); }
  EvalSums& shard_sums(std::size_t shard) { return shard_sums_[shard]; }
  Range shards() const { return ranks_.own(shard_sums_.size()); }  // of this rank

  // Does what Evaluator::evaluate() does. Collective.
  EvalResult evaluate(Split split, std::int64_t limit = 0) {
    return evaluator_.evaluate(split, limit, nullptr, ranks_);
  }

  std::int64_t steps() const { return optimizer_.steps(); }
  Model& model() { return evaluator_.model(); }
  const Model& model() const { return evaluator_.model(); }
  const Dataset& dataset() const { return evaluator_.dataset(); }
  // Throws Error if the weights of a rank differ. Collective.
  void require_equal_weights();
  // Copies parameters, moments and the number of steps of rank 0 to all ranks. Collective.
  void distribute_state();

  Optimizer& optimizer() { return optimizer_; }
  const Optimizer& optimizer() const { return optimizer_; }
  int threads() const { return evaluator_.threads(); }

  // Times of steps since start_profile(), summed over threads: by phase (data, forward, backward, gradients
  // for their sum and norm, optimizer, communication for waiting for other ranks), and by op.
  struct StepProfile {
    Profile phases;
    Tape::OpProfile ops;
  };
  void start_profile();
  StepProfile profile() const;

  // Calls f(i, thread) for i in 0 .. n-1 on the threads of this trainer.
  template <class F>
  void run(std::int64_t n, const F& f) {
    evaluator_.pool().run(n, f);
  }

  // Returns the gradients of the last step, summed over the batch.
  std::span<const Real> gradients() const { return gradients_->total(); }

 private:
  struct Worker {
    Tape tape;
    Batch batch;
    StepProfile profile;
  };

  // Returns the loss of a batch, summed over labeled positions.
  Var forward(Tape& tape, const Batch& batch, const ForwardOptions& options, EvalSums& sums) const;
  void run_micro_batch(std::int64_t step, const MicroBatch& batch, Worker& worker);
  void run_batch(std::int64_t step, const MicroBatch& batch, Worker& worker);  // that the worker has
  void warm_up(Worker& worker);
  void run_shard(std::int64_t step, std::int64_t shard, Worker& worker);
  void pack_weights();
  double reduce_gradients();  // sums the gradients of all shards and returns the sum of squares
  void require_equal_ranks();
  std::int64_t first_shard() const { return static_cast<std::int64_t>(shards().first); }
  // Calls f(segment, its index) for some segments of the optimizer, on all threads.
  template <class F>
  void each_segment(std::string_view name, const Range& range, const F& f);
  // Calls f() if there are other ranks.
  template <class F>
  void communicate(const F& f);
  [[noreturn]] void throw_non_finite(std::int64_t step, double loss, double norm);
  double learning_rate(std::int64_t step) const;
  // Ends the current phase of the worker and starts another, unless the name is empty.
  void phase(Worker& worker, std::string_view name) const;
  ForwardOptions training_options(std::int64_t step, std::int64_t first_sample) const;

  OpenConfig config_;
  Ranks& ranks_;
  Evaluator evaluator_;
  Optimizer optimizer_;
  StepBatches batches_;
  std::unique_ptr<GradientSum> gradients_;
  Tape::PostAccumulateGradHook complete_;  // of the last micro-batch of a shard; empty if nobody watches
  std::vector<EvalSums> shard_sums_;
  std::vector<Worker> workers_;
  std::vector<double> segment_squares_;
  bool profiling_ = false;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
