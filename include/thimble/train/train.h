// The main job: train the model that a config describes. Works in the precision that the config names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thimble/autograd/gradcheck_result.h"
#include "thimble/config/config.h"

namespace thimble {

// How a model does on a set of sequences.
struct SplitReport {
  double loss = 0;               // mean cross entropy per labelled position, nats
  double accuracy = 0;           // share of labelled positions predicted right
  double sequence_accuracy = 0;  // share of sequences with every labelled position right
  std::int64_t sequences = 0;
};

struct StepReport {
  std::int64_t step = 0;  // 1 for the first
  double loss = 0;        // mean over the step's labelled positions, before the update
  double accuracy = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  // global, before clipping
};

struct TrainResult {
  std::int64_t steps = 0;
  StepReport train;  // the last step
  std::optional<SplitReport> validation, test;
  std::string weights_hash;  // XXH3-64 of the final parameters
  std::int64_t parameters = 0;
  double seconds = 0;
  int threads = 0;
  std::string directory;  // of the run; empty when none was written
};

// Told what happens while training goes on. Calls come from the thread that called train().
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_start(const Config&, const TrainResult& /*so_far*/) {}
  virtual void on_step(const StepReport&) {}
  virtual void on_validation(std::int64_t /*step*/, const SplitReport&) {}
};

struct TrainOptions {
  std::string directory;  // where the run is written; empty: nowhere
  TrainObserver* observer = nullptr;
};

// Each job below, if a config's memory would not fit, throws ConfigError before it allocates or writes
// anything; see require_memory.

// Trains from the first step to the last. With a directory, which must not exist or be empty, writes
// config.yaml, metrics.jsonl, summary.json and checkpoints/final.safetensors there. Throws CheckpointError
// when that cannot be written and NumericError, naming step, op and layer, when a loss or gradient is not
// finite.
TrainResult train(const Config& config, const TrainOptions& options = {});

// Checks the gradient of every parameter of the config's model in double, on a small batch, dropout included.
std::vector<GradcheckResult> check_model(const Config& config);

// Checks the gradient of every op, or of the one named, in double. Throws ConfigError when there is no such
// op.
std::vector<GradcheckResult> check_ops(const std::string& only = "");

}  // namespace thimble
