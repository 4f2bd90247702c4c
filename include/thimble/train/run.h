// Run directories:
//   config.yaml     every value, ready to train with
//   data.json       vocabulary, and path, size and hash of each data file; see data_record.h
//   metrics.jsonl   an object per line: step, split (train, validation, test, heads), loss, ..., check, seconds
//   changes.json    values that changed on resuming, once there is one; see run_files.h
//   checkpoints/    step-N.safetensors (the last two, and those of checkpoint_series), best.safetensors,
//                   and final.safetensors once training has ended
//   summary.json    the result, once training has ended
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "thimble/config/config.h"
#include "thimble/core/file.h"
#include "thimble/core/json.h"
#include "thimble/core/lock.h"
#include "thimble/data/prediction.h"
#include "thimble/train/run_files.h"
#include "thimble/train/train.h"

namespace thimble {

struct RunState;

// A trained model: that of a run, or a config with weights made elsewhere.
struct ModelSource {
  Config config;
  std::filesystem::path weights;
  std::filesystem::path run{};         // its directory; empty for weights made elsewhere
  std::vector<std::string> changes{};  // a line for each data file that has changed since training
};

// Opens the newest checkpoint of a run, or the one named: "best", "final" or a step. `overrides` are those of
// open_config. Finishes the pruning of a run that was killed at its end. Throws CheckpointError when there is
// no such run or checkpoint, and ConfigError as require_run() does, see run_files.h.
ModelSource open_run(const std::filesystem::path& directory, const std::vector<std::string>& overrides = {},
                     const std::string& checkpoint = "");

// Opens weights without a run. Without a config file, "", the config is that of the weights' metadata, which
// thimble's checkpoints have. Throws CheckpointError when there is none.
ModelSource open_weights(const std::filesystem::path& weights, const std::string& config_file,
                         const std::vector<std::string>& overrides = {});

// Evaluates the model on a split of its config's task, or on its first `limit` sequences, required for an
// unlimited split. `predictions`, unless null, is set to the answers that the result counts. Throws
// CheckpointError when the weights do not fit the config.
EvalResult evaluate(const ModelSource& source, Split split, std::int64_t limit = 0,
                    std::vector<Prediction>* predictions = nullptr);

// Returns the record of the data that the config trains on.
DataRecord record_of(const Config& config);

// Returns a line for each data file of the config whose content differs from that of the run in the
// directory.
std::vector<std::string> changed_data(const std::filesystem::path& directory, const Config& config);

// Returns runs/NAME, where NAME is the config's file name with a hash of its values.
std::filesystem::path run_directory(const std::filesystem::path& config_file, const Config& config);
// Returns the first of NAME, NAME-2, ... that does not exist.
std::filesystem::path unused_run_directory(const std::filesystem::path& config_file, const Config& config);

// A writer of a run directory. All functions throw CheckpointError when a file cannot be written.
class RunWriter {
 public:
  // Creates the directory and locks it for this process. It must be missing or empty, or with `resume` may
  // hold a run. Throws CheckpointError when it is in use or holds other files, and ConfigError, with each key
  // or data file that differs, when it holds a run with another config or other data.
  RunWriter(const std::filesystem::path& directory, const Config& config, bool resume);

  // Returns the checkpoints to resume from, newest first; the best one comes last.
  std::vector<std::filesystem::path> checkpoints() const;

  // Throws CheckpointError when metrics.jsonl is shorter than the state says, or has other lines.
  void require_metrics(const RunState& state) const;
  // Renames the damaged checkpoints to NAME.damaged, writes config and data, and opens metrics.jsonl, cut to
  // the size in the state. Until then nothing in the directory changes. Throws CheckpointError when the run
  // starts again over metrics of another one.
  void start(const RunState& state, const std::vector<std::filesystem::path>& damaged);
  void metrics(const Json& line, double seconds);  // appends a line
  // Flushes metrics.jsonl to disk, and stores its size and check.
  void sync_metrics(RunState& state);

  // Return paths of checkpoints.
  std::filesystem::path step_path(std::int64_t step) const;
  std::filesystem::path best_path() const;
  std::filesystem::path final_path() const;
  // Prepares a finished run for further steps: its final checkpoint becomes step-N.safetensors.
  void reopen(std::int64_t final_step);
  // Removes checkpoints of steps, except the newest two, or only the newest if training has `ended`, and
  // except steps 1, 2, 5, 10, 20, 50, ... of a `series`.
  void prune(bool ended, bool series);

  void finish(const TrainResult& result);  // flushes metrics.jsonl and writes summary.json

 private:
  std::filesystem::path directory_;
  Config config_;
  std::string identity_;
  MetricsCheck check_;
  std::optional<DirectoryLock> lock_;
  std::optional<AppendFile> metrics_;
};

// Returns whether the step is in the series 1, 2, 5, 10, 20, 50, ...
bool in_series(std::int64_t step);

// Returns whether train.log_heads logs after the step; step 0 is before the first. Logging steps are the R20
// preferred numbers of ISO 3, 20 per decade, rounded down: 0, every step up to 12, 14, 16, 18, 20, 22, 25,
// ..., 90, 100, 112, 125, 140, ...; from 6 on, each is at most 1.17 times the one before. The last step is
// logged as well.
bool is_logging_step(std::int64_t step);

}  // namespace thimble
