// Trains a model by sharded data-parallel steps.
//
// A batch is cut into a fixed number of shards. Any free thread computes a shard, in micro-batches that fit
// its cache, into the gradient buffer of the shard; the buffers are summed in a fixed binary tree. So every
// bit of a result depends on the config, and never on the number of threads.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/optim/optimizer.h"
#include "thimble/train/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// A model with its optimizer, shards and threads.
class Trainer {
 public:
  // Builds the model with its initial values. Throws DataError when the task does not suit the output.
  explicit Trainer(const Config& config);

  // Makes one optimizer step; the first call is step 1. From the third on it allocates nothing. Throws
  // NumericError when the loss or the gradient is not finite, and then leaves the parameters unchanged.
  StepReport step();

  // Does what Evaluator::evaluate() does.
  EvalResult evaluate(Split split, std::int64_t limit = 0) { return evaluator_.evaluate(split, limit); }

  std::int64_t steps() const { return optimizer_.steps(); }
  Model& model() { return evaluator_.model(); }
  const Model& model() const { return evaluator_.model(); }
  const Dataset& dataset() const { return evaluator_.dataset(); }
  Optimizer& optimizer() { return optimizer_; }
  const Optimizer& optimizer() const { return optimizer_; }
  int threads() const { return evaluator_.threads(); }

  // Times of steps since start_profile(), summed over threads: by phase (data, forward, backward, gradients
  // for their sum and norm, optimizer), and by op.
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
  std::span<const Real> gradients() const { return shards_.front().gradients; }

 private:
  struct Shard {
    AlignedVector<Real> gradients;
    EvalSums sums;
  };
  struct Worker {
    Tape tape;
    Batch batch;
    StepProfile profile;
  };

  // Returns the loss of a batch, summed over labeled positions.
  Var forward(Tape& tape, const Batch& batch, const ForwardOptions& options, EvalSums& sums) const;
  void run_micro_batch(std::int64_t step, std::int64_t first, std::int64_t count, Shard& shard,
                       Worker& worker);
  void run_shard(std::int64_t step, std::int64_t index, Worker& worker);
  void pack_weights();
  double reduce_gradients();  // sums into the first shard and returns the sum of squares
  [[noreturn]] void throw_non_finite(std::int64_t step, double loss, double norm);
  double learning_rate(std::int64_t step) const;
  // Ends the current phase of the worker and starts another, unless the name is empty.
  void phase(Worker& worker, std::string_view name) const;
  ForwardOptions training_options(std::int64_t step, std::int64_t first_sample) const;
  // Calls f(first, count) for the micro-batches of a shard, which are as even as possible.
  template <class F>
  void for_micro_batches(std::int64_t shard, const F& f) const;

  Config config_;
  Evaluator evaluator_;
  Optimizer optimizer_;
  std::int64_t micro_batches_;  // of a shard
  std::vector<Shard> shards_;
  std::vector<Worker> workers_;
  std::vector<double> segment_squares_;
  bool profiling_ = false;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
