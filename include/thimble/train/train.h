// Trains the model of a config, in the precision of the config.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "thimble/engine/gradcheck_result.h"
#include "thimble/train/config.h"
#include "thimble/train/observer.h"
#include "thimble/train/ranks.h"
#include "thimble/train/results.h"
#include "thimble/train/run_directory.h"

namespace thimble {

// Where and how training writes a run.
struct TrainOptions {
  RunDirectory directory;  // empty: none is written
  bool resume = false;     // resume the run in the directory, if there is one
  TrainObserver* observer = nullptr;
  // Makes the log of train.log_heads: head_log of inspect. Called only if heads are logged to a run.
  std::function<HeadLog(const OpenConfig&)> make_head_log = nullptr;
  std::int64_t stop_after = 0;  // step to stop after as the observer would; 0: none
  // The ranks that train together; all of them must call train(). Rank 0 writes the run.
  Ranks* ranks = &one_process();
  bool new_rate = false;  // a resumed run may have another learning rate
};

// Trains until the last step, the target, the end of patience or a stop of the observer. With a directory,
// which must be missing or empty, writes a run there (see run.h). With `resume` the directory may hold a run
// with the same config, except for keys that may change: training resumes from its newest valid checkpoint
// and ends with the same bits as without interruption. With train.log_heads, the head log is written to
// metrics.jsonl as split "heads" and changes nothing else. Throws CheckpointError when the run cannot be
// written or read or is in use, ConfigError when it has another config or `make_head_log` is missing, and
// NumericError, naming step, op, layer and head, when a loss or gradient is not finite; earlier checkpoints
// remain.
TrainResult train(const OpenConfig& config, const TrainOptions& options = {});

// Returns a line for each split that shares inputs with training, with the cause.
std::vector<std::string> shared_remarks(const OpenConfig&, const TrainResult&);

// Checks the gradient of every parameter of the config's model in double, on a small batch, dropout included.
std::vector<GradcheckResult> check_model(const OpenConfig& config);

// Checks the gradient of every op, or only of the named one, in double. Throws ConfigError for an unknown op.
std::vector<GradcheckResult> check_ops(const std::string& only = "");

}  // namespace thimble
