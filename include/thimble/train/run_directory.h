// A run's directory, and the only code that names a file in it. docs/runs.md, "What a run directory promises", has the
// rules.
//
//   data.json       first of all the format; vocabulary, and path, size and hash of each data file; see data_record.h
//   config.yaml     every value, ready to train with
//   metrics.jsonl   an object per line: step, split (train, validation, test, heads, change), loss, ..., seconds;
//                   the first line of a file states the run's identity
//   checkpoints/    step-N.safetensors (the last two, and those of checkpoint_series), best.safetensors,
//                   and final.safetensors once training has ended
//   summary.json    the result, once training has ended
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "thimble/train/config.h"
#include "thimble/train/data_record.h"
#include "thimble/train/json.h"
#include "thimble/train/run_state.h"
#include "thimble/train/safetensors.h"

namespace thimble {

// Returns the identity of a run: 16 hexadecimal digits, a hash of the config values that may not change and of the
// data. A run keeps that of its beginning.
std::string run_identity(const Config& config, const DataRecord& data);

// The format of runs, which data.json and checkpoints state, and that of version 0.3.0, which is read as well.
inline constexpr const char *kRunFormat = "thimble 4", *kRunFormat3 = "thimble 3";

// A checkpoint of a run, open, with what it states.
struct Checkpoint {
  std::shared_ptr<const SafetensorsFile> file;
  Config config;  // that it was trained with
  RunState state;

  std::string weights_hash() const { return file->metadata().at("weights_hash"); }
};

// Returns what a file states. Throws CheckpointError when it is not a checkpoint of a run of this format.
Checkpoint checkpoint_of(std::shared_ptr<const SafetensorsFile> file);

// A run, for reading. Nothing is written. Files are opened when they are asked for, and the small ones once: copies
// share them.
class RunDirectory {
 public:
  RunDirectory() = default;  // no run
  RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  RunDirectory(const std::string& path) : path_(path) {}
  RunDirectory(const char* path) : path_(path) {}

  bool empty() const { return path_.empty(); }
  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return path_.string(); }

  // Returns whether data.json has the format of a run.
  bool is_run() const;
  // Throws CheckpointError, saying why, unless it is one.
  void require_run() const;
  // Returns whether a run has a file of that name, relative to its directory.
  static bool has_name(const std::filesystem::path& file);

  // Return where config.yaml is, and its text; without the file, the config of the newest intact checkpoint. Throw
  // CheckpointError. A run that was killed before it had either has none.
  bool has_config() const;
  std::filesystem::path config_path() const;
  const std::string& config_text() const;
  Config config() const;  // parsed; rules that only training needs do not matter
  // Returns the record in data.json. Throws CheckpointError if there is none.
  const DataRecord& data() const;

  // Opens the checkpoint of the result, or the newest while there is none, or the one named: "best", "final" or a step, and compares it with config.yaml and
  // data.json. Adds what else to know to `remarks`. The newest is the final one, or else that of the last step, or else
  // the best. Throws CheckpointError when there is none, or it is damaged or not what its name says, and ConfigError,
  // with both values, when it was trained with another config or other data. Keys that may change on resuming may
  // differ, and the learning rate, with a remark where training depends on them.
  Checkpoint checkpoint(const std::string& name, std::vector<std::string>& remarks) const;
  // Returns the checkpoints of steps and the final one by step, but for `open` newly opened. One that checkpoint() would
  // refuse is left out, with a remark.
  std::map<std::int64_t, std::shared_ptr<const SafetensorsFile>> series(
      const std::shared_ptr<const SafetensorsFile>& open, std::vector<std::string>& remarks) const;

  // Returns whether summary.json is there.
  bool has_summary() const;
  // Returns whether the summary says that the result of the run is its best checkpoint.
  bool has_best_result() const;
  // Returns summary.json; null if it is not there, or, with a remark, if it is damaged, or is of another run or, unless
  // "", of other weights.
  Json summary(const std::string& run, const std::string& weights_hash,
               std::vector<std::string>& remarks) const;

  // Calls f(line) with the object of each line of metrics.jsonl, the first of each step, split and key, and adds a remark
  // where others are left out, lines are no objects, or the file is missing or of another run than the state of a
  // checkpoint. A last line that is incomplete does not count. A state of step 0 is compared with nothing.
  void read_metrics(const RunState& state, const std::function<void(const Json& line)>& f,
                    std::vector<std::string>& remarks) const;
  // Returns the step of the last line of metrics.jsonl; 0 if there is none.
  std::int64_t last_step() const;

 private:
  friend class RunWriter;
  struct Texts;

  Texts& texts() const;
  std::filesystem::path checkpoint_path(const std::string& name) const;
  // Throws ConfigError unless the checkpoint is of this config and data, and CheckpointError unless it is what its name
  // says; returns the differences that may be.
  std::vector<std::string> require_own(const Checkpoint& checkpoint, bool any_rate) const;

  std::filesystem::path path_;
  mutable std::shared_ptr<Texts> texts_;
};

}  // namespace thimble
