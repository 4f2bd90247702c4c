// A model in training: sharded data-parallel steps and evaluation.
//
// A batch is cut into a fixed number of shards. Each is computed on whichever thread is free, in
// micro-batches sized for the cache, into a gradient buffer of its own; the buffers are summed in a fixed
// binary tree. So every bit of a result depends on the config and never on the number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "thimble/autograd/tape.h"
#include "thimble/config/config.h"
#include "thimble/core/thread_pool.h"
#include "thimble/data/dataset.h"
#include "thimble/model/model.h"
#include "thimble/optim/optimizer.h"
#include "thimble/train/train.h"

namespace thimble::inline THIMBLE_PRECISION {

// The dataset that a config's task and output describe.
Dataset make_dataset(const Config& config);

// The labelled positions of a batch, or none where all are.
std::span<const std::int32_t> labelled_rows(const Batch&);

// Logits of a batch's labelled positions, (R, V) for the labels batch.row_labels; the rest is not computed.
Var labelled_logits(const Model&, Tape&, const Batch&, const Pass&);

// The sequences of a batch, which must outlive the pass.
ModelInput model_input(const Batch&);

// The model that the config describes, for such data.
std::unique_ptr<Model> make_model(const ModelConfig&, const Dataset&);

class Trainer {
 public:
  // Builds the model and gives it its initial values. Throws DataError when the task does not fit the output.
  // One that only evaluates needs no training data: `trains` is false.
  explicit Trainer(const Config& config, bool trains = true);

  // One optimizer step; the first call is step 1. From the third on it allocates nothing. Throws NumericError
  // when the loss or the gradient is not finite; the parameters are then those before the step.
  StepReport step();

  // Evaluates on a whole split, or on its first `limit` sequences; endless splits need a limit. Looks for
  // leaks where sequences are fresh: not those of a finite training split.
  SplitReport evaluate(Split split, std::int64_t limit = 0);

  std::int64_t steps() const { return optimizer_.steps(); }
  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  const Dataset& dataset() const { return dataset_; }
  Optimizer& optimizer() { return optimizer_; }
  const Optimizer& optimizer() const { return optimizer_; }
  int threads() const { return pool_.threads(); }

  // From now on steps are timed: data, forward, backward, gradients (their sum and norm) and optimizer, and
  // forward and backward by op. The sums are over all threads.
  struct StepProfile {
    Profile phases;
    Tape::OpProfile ops;
  };
  void start_profile();
  StepProfile profile() const;

  // f(i, thread) for i in 0 .. n-1, on the threads of this trainer.
  template <class F>
  void run(std::int64_t n, const F& f) {
    pool_.run(n, f);
  }

  std::span<const Real> gradients() const {
    return shards_.front().gradients;
  }  // of the last step, summed, unscaled

 private:
  struct Totals {
    double loss = 0;
    std::int64_t labelled = 0, correct = 0, correct_sequences = 0, written = 0;
    std::int64_t usual = 0;  // labels that are the usual answer
    // Sums over sequences of their correct and labelled positions, squared and multiplied.
    std::int64_t correct_squared = 0, correct_labelled = 0, labelled_squared = 0;
    void add(const Totals& other);
  };
  struct Shard {
    AlignedVector<Real> gradients;
    Totals totals;
  };
  struct Worker {
    Tape training;
    Tape inference{Tape::Mode::inference};
    Batch batch;
    StepProfile profile;
  };

  // Forward pass of the worker's batch; the loss is the sum over labelled positions.
  Var forward(Tape& tape, const Batch& batch, const Pass& pass, Totals& totals) const;
  std::int64_t count_written(const Batch& batch) const;  // answers that the model writes right
  void run_micro_batch(std::int64_t step, std::int64_t first, std::int64_t count, Shard& shard,
                       Worker& worker);
  void run_shard(std::int64_t step, std::int64_t shard, Worker& worker);
  void refresh_transposes();
  double reduce_gradients();  // into the first shard; returns the sum of squares
  [[noreturn]] void explain(std::int64_t step, double loss, double norm);
  static double accuracy_error(const Totals& totals, std::int64_t sequences);
  double loss_error() const;  // of the chunks of an evaluation
  std::int32_t usual_answer() const;
  std::optional<double> chance(const Totals& totals) const;
  std::optional<double> lowest_loss(Split split) const;
  double learning_rate(std::int64_t step) const;
  // Ends the phase before on this worker, and begins one unless the name is empty.
  void phase(Worker& worker, std::string_view name) const;
  Pass training_pass(std::int64_t step, std::int64_t first_sample) const;
  std::int64_t shard_begin(std::int64_t shard) const;

  Config config_;
  Dataset dataset_;
  std::unique_ptr<Model> model_;
  Transposes transposes_;
  Optimizer optimizer_;
  ThreadPool pool_;
  std::int64_t micro_batch_;  // sequences
  std::vector<Shard> shards_;
  std::vector<Worker> workers_;
  std::vector<double> segment_squares_;
  std::vector<Totals> chunks_;
  std::optional<std::int32_t> usual_answer_;  // once an evaluation needs it
  bool profiling_ = false;
};

}  // namespace thimble::inline THIMBLE_PRECISION
