// The main job: train the model that a config describes. Works in the precision that the config names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "thimble/autograd/gradcheck_result.h"
#include "thimble/config/config.h"
#include "thimble/core/json.h"

namespace thimble {

// How a model does on one sequence.
struct SequenceResult {
  double loss = 0;  // cross entropy summed over labelled positions, nats
  std::int64_t labelled = 0, correct = 0;
};

// How a model does on a set of sequences.
struct EvalResult {
  double loss = 0;               // mean cross entropy per labelled position, nats
  double accuracy = 0;           // share of labelled positions predicted right
  double sequence_accuracy = 0;  // share of sequences with every labelled position right
  std::int64_t sequences = 0;
  double loss_error = 0;  // standard error of the loss; 0 when there are too few sequences to tell
  // The lowest loss that the task allows, if the loss is below it, by more than 4 standard errors, on
  // sequences drawn apart from those of training: the model must have seen answers.
  std::optional<double> leak{};
  double accuracy_error = 0;  // standard error of the accuracy, from the spread between sequences
  // Accuracy of the best answer that is always the same; missing when the training data of a file is gone.
  std::optional<double> chance{};
  // The lowest loss that the task allows on fresh sequences, where it is known.
  std::optional<double> lowest_loss{};
  // Of models that write: the share of sequences whose whole answer they write right, the likeliest token
  // after each other, from nothing but the source. The numbers above are those of answers read so far right.
  std::optional<double> exact_match{};
  std::vector<SequenceResult> per_sequence{};  // of Evaluator::run()

  static constexpr double kInterval = 1.959964;  // standard errors of a 95 % interval, to either side
  // Whether the 95 % interval of the accuracy reaches down to chance; never from a single sequence.
  bool no_better_than_chance() const {
    return chance && sequences > 1 && accuracy - kInterval * accuracy_error <= *chance;
  }
};

struct StepReport {
  std::int64_t step = 0;  // 1 for the first
  double loss = 0;        // mean over the step's labelled positions, before the update
  double accuracy = 0;
  double sequence_accuracy = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  // global, before clipping
};

// Why training ended.
enum class Stopped { at_last_step, at_target, out_of_patience, interrupted };

struct TrainResult {
  std::int64_t steps = 0;
  Stopped stopped = Stopped::at_last_step;
  bool target_missed = false;  // the config has one, and the last evaluation did not reach it
  StepReport train;            // the last step
  std::optional<EvalResult> validation, test;
  std::int64_t best_step = 0;  // of the lowest validation loss; 0 without validation
  double best_loss = 0;
  // Sequences of a split that training also has, where the task is too small to keep them apart.
  std::int64_t shared_validation = 0, shared_test = 0;
  std::string weights_hash;  // XXH3-64 of the final parameters
  std::int64_t parameters = 0;
  double seconds = 0;  // of all sessions of a run that was interrupted
  int threads = 0;
  std::string directory;  // of the run; empty when none was written
};

// Told what happens while training goes on. Calls come from the thread that called train().
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  // Before the first step, with steps > 0 when a run is continued.
  virtual void on_start(const Config&, const TrainResult& /*so_far*/) {}
  virtual void on_step(const StepReport&) {}
  virtual void on_validation(std::int64_t /*step*/, const EvalResult&) {}
  // A checkpoint that could not be used, and why; the one before it is tried next.
  virtual void on_damaged(const std::string& /*reason*/) {}
  // Asked after every step; true ends training with everything saved.
  virtual bool wants_stop() { return false; }
};

// The parameters of a model in the precision of its config, as ParameterStore lays them out.
using WeightsView = std::variant<std::span<const float>, std::span<const double>>;

// A JSON object about the model with these parameters, the same whenever they are.
using HeadLog = std::function<Json(WeightsView)>;

struct TrainOptions {
  std::string directory;  // where the run is written; empty: nowhere
  bool resume = false;    // continue the run in the directory, if there is one
  TrainObserver* observer = nullptr;
  // For train.log_heads: inspect's head_log. Not called when heads are not logged or nothing is written.
  std::function<HeadLog(const Config&)> make_head_log = nullptr;
};

// Each job below, if a config's memory would not fit, throws ConfigError before it allocates or writes
// anything; see require_memory.

// Trains until the last step, the target, the end of patience or a wish of the observer. With a directory,
// which must not exist or be empty, writes a run there (see run.h). With `resume` it may hold a run of the
// same config, fields that may change aside: training goes on from its newest checkpoint that is sound, and
// ends with the same bits as if it had never stopped. With train.log_heads, what the head log returns goes
// into metrics.jsonl as split "heads"; it changes nothing else. Throws CheckpointError when the run cannot be
// written or read or is in use, ConfigError when it is of another config or `make_head_log` is missing, and
// NumericError, naming step, op, layer and head, when a loss or gradient is not finite; checkpoints written
// before stay.
TrainResult train(const Config& config, const TrainOptions& options = {});

Json to_json(const StepReport&);
Json to_json(const EvalResult&);
Json to_json(const TrainResult&);

// Checks the gradient of every parameter of the config's model in double, on a small batch, dropout included.
std::vector<GradcheckResult> check_model(const Config& config);

// Checks the gradient of every op, or of the one named, in double. Throws ConfigError when there is no such
// op.
std::vector<GradcheckResult> check_ops(const std::string& only = "");

}  // namespace thimble
