// Run directories: config.yaml (resolved, replayable), metrics.jsonl, checkpoints/final.safetensors,
// summary.json.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "thimble/config/config.h"
#include "thimble/train/train.h"

namespace thimble {

// Where a trained model comes from: a run, or a config and weights made elsewhere.
struct ModelSource {
  Config config;
  std::filesystem::path weights;
};

// Throws CheckpointError when `directory` is not a finished run; `overrides` as in load_config.
ModelSource open_run(const std::filesystem::path& directory, const std::vector<std::string>& overrides = {});

// How the model does on a split of its config's task. Throws CheckpointError when the weights do not fit the
// config.
SplitReport evaluate(const ModelSource& source, Split split);

// The first of runs/NAME, runs/NAME-2, ... that does not exist, NAME being the config's file name and a hash
// of its values.
std::filesystem::path free_run_directory(const std::filesystem::path& config_file, const Config& config);

// A run being written.
class RunWriter {
 public:
  // Creates the directory. Throws CheckpointError when it exists and is not empty, or cannot be made.
  RunWriter(const std::filesystem::path& directory, const Config& config);

  // A line of metrics.jsonl. Throws CheckpointError when it cannot be written.
  void metrics(const nlohmann::ordered_json& line);
  void finish(const TrainResult& result);
  std::filesystem::path weights_path() const;

 private:
  std::filesystem::path directory_;
  std::ofstream metrics_;
};

nlohmann::ordered_json to_json(const StepReport&);
nlohmann::ordered_json to_json(const SplitReport&);
nlohmann::ordered_json to_json(const TrainResult&);

}  // namespace thimble
