// Run directories:
//   config.yaml     every value, replayable
//   data.json       vocabulary, and path, size and hash of each data file; see data_record.h
//   metrics.jsonl   an object a line: step, split (train, validation, test, heads), loss, ...; the time comes
//                   last
//   checkpoints/    step-N.safetensors (the last two, and a series if asked for), best.safetensors,
//                   final.safetensors once training is over
//   summary.json    the result, once it is there
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "thimble/config/config.h"
#include "thimble/core/file.h"
#include "thimble/core/json.h"
#include "thimble/core/lock.h"
#include "thimble/train/train.h"

namespace thimble {

// Where a trained model comes from: a run, or a config and weights made elsewhere.
struct ModelSource {
  Config config;
  std::filesystem::path weights;
  std::filesystem::path run{};         // its directory; empty for weights made elsewhere
  std::vector<std::string> changes{};  // data files whose content is not that of training, a line each
};

// The newest checkpoint of a run, or the one named: "best", "final" or a step. Throws CheckpointError when
// there is no such run or checkpoint; `overrides` as in load_config. Finishes the pruning of a run that was
// killed at its end.
ModelSource open_run(const std::filesystem::path& directory, const std::vector<std::string>& overrides = {},
                     const std::string& checkpoint = "");

// Weights in a file of their own. Without a config file, "", the config is the one in their metadata, as
// thimble's checkpoints have it. Throws CheckpointError when there is none.
ModelSource open_weights(const std::filesystem::path& weights, const std::string& config_file,
                         const std::vector<std::string>& overrides = {});

// How the model does on a split of its config's task, or on its first `limit` sequences, which an endless
// split needs. Throws CheckpointError when the weights do not fit the config.
EvalResult evaluate(const ModelSource& source, Split split, std::int64_t limit = 0);

// What a run of that config is trained on.
DataRecord record_of(const Config& config);

// A line for each data file of the config whose content is not that of the run in the directory.
std::vector<std::string> changed_data(const std::filesystem::path& directory, const Config& config);

// runs/NAME, NAME being the config's file name and a hash of its values.
std::filesystem::path run_directory(const std::filesystem::path& config_file, const Config& config);
// The first of NAME, NAME-2, ... that does not exist.
std::filesystem::path unused_run_directory(const std::filesystem::path& config_file, const Config& config);

// A run being written. All functions throw CheckpointError when something cannot be.
class RunWriter {
 public:
  // Makes the directory and locks it for this process. It must not exist or be empty, unless `resume`: then
  // it may hold a run. Throws CheckpointError when it is in use or holds something else, and ConfigError,
  // with each field or data file that differs, when the run is of another config or of other data.
  RunWriter(const std::filesystem::path& directory, const Config& config, bool resume);

  // Checkpoints to resume from, newest first.
  std::vector<std::filesystem::path> checkpoints() const;
  void set_aside(const std::filesystem::path& damaged);  // renames it to NAME.damaged

  // Throws when metrics.jsonl is shorter than that.
  void require_metrics(std::uint64_t bytes) const;
  // Before the first line: the file is cut to that size.
  void start_metrics(std::uint64_t bytes);
  void metrics(const Json& line);
  std::uint64_t sync_metrics();  // returns its size

  // Names for checkpoints.
  std::filesystem::path step_path(std::int64_t step) const;
  std::filesystem::path best_path() const;
  std::filesystem::path final_path() const;
  // A run that was finished at that step goes on: its final checkpoint becomes one like the others.
  void reopen(std::int64_t final_step);
  // Removes checkpoints of steps but for the newest two, once training has ended the newest, and, if asked,
  // steps 1, 2, 5, 10, 20, 50, ...
  void prune(bool ended, bool series);

  void finish(const TrainResult& result);

 private:
  std::filesystem::path directory_;
  std::optional<DirectoryLock> lock_;
  std::optional<AppendFile> metrics_;
};

// Whether a log-spaced series has that step: 1, 2, 5, 10, 20, 50, ...
bool in_series(std::int64_t step);

// Whether train.log_heads looks at the model after that step; step 0 is before the first. It does at the
// R20 preferred numbers of ISO 3, 20 a decade, rounded down: 0, every step up to 12, 14, 16, 18, 20, 22, 25,
// ..., 90, 100, 112, 125, 140, ... From 6 on none is more than 1.17 times the one before. The end of
// training is looked at in any case.
bool is_logging_step(std::int64_t step);

}  // namespace thimble
