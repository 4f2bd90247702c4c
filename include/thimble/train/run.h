// Trained models, in runs and in files, and the names of runs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "thimble/train/config.h"
#include "thimble/train/prediction.h"
#include "thimble/train/run_directory.h"
#include "thimble/train/safetensors.h"

namespace thimble {

// A data file that is not as it was in training.
struct FileChange {
  std::string text;         // a line
  bool unreadable = false;  // whether it cannot be read now
};

// A trained model: that of a run, or a config with weights made elsewhere.
struct ModelSource {
  OpenConfig config;
  std::filesystem::path weights;
  RunDirectory run{};                             // empty for weights made elsewhere
  std::vector<FileChange> changes{};              // of data files since training
  std::vector<std::string> remarks{};             // other lines on the run
  std::shared_ptr<const SafetensorsFile> file{};  // the weights; null: they are opened where they are read
  RunState state{};                               // of the checkpoint

  // Returns the open file of the weights. Throws CheckpointError as SafetensorsFile does.
  std::shared_ptr<const SafetensorsFile> open() const;
};

// Opens the newest checkpoint of a run, or the one named: "best", "final" or a step. `overrides` are those of
// open_config. Throws as RunDirectory::checkpoint().
ModelSource open_run(const RunDirectory& run, const std::vector<std::string>& overrides = {},
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

// Returns a line for each data file of the config whose content differs from that of the run.
std::vector<std::string> changed_data(const RunDirectory& run, const OpenConfig& config);

// Returns the values whose hash the name of a run or sweep has. Paths of data files below the current folder, which has
// runs/ too, are relative to it, so that a project that moves keeps its names.
std::string named_values(const Config& values);

// Returns runs/NAME, where NAME is the config's file name with a hash of its values.
std::filesystem::path run_directory(const std::filesystem::path& config_file, const Config& config);
// Returns the first of NAME, NAME-2, ... that does not exist.
std::filesystem::path unused_run_directory(const std::filesystem::path& config_file, const Config& config);

// Returns whether the step is in the series 1, 2, 5, 10, 20, 50, ...
bool in_series(std::int64_t step);

// Returns the steps between evaluations of as many validation sequences; 0: only after the last. kAuto is the first number of
// the series 1, 2, 5, 10, ... with at most twenty evaluations, each of at most a fifth as many sequences as were trained since
// the one before; with a target or patience, which evaluations are for, that second condition does not count.
std::int64_t evaluation_interval(const TrainConfig& train, std::int64_t validation);

// Returns whether train.log_heads logs after the step; step 0 is before the first. Logging steps are the R20
// preferred numbers of ISO 3, 20 per decade, rounded down: 0, every step up to 12, 14, 16, 18, 20, 22, 25,
// ..., 90, 100, 112, 125, 140, ...; from 6 on, each is at most 1.17 times the one before. The last step is
// logged as well.
bool is_logging_step(std::int64_t step);

}  // namespace thimble
