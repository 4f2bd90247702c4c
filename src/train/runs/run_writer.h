// The writer of a run's directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "thimble/train/file.h"
#include "thimble/train/run_directory.h"
#include "thimble/train/train.h"
#include "train/files/lock.h"

namespace thimble {

// A writer of a run directory. All functions throw CheckpointError when a file cannot be written.
class RunWriter {
 public:
  // Creates the directory and locks it for this process. It must be missing or empty, or to resume may hold a run. Then
  // opens the newest intact checkpoint, and compares everything that the run would overwrite, rename or delete. Nothing
  // changes. Throws CheckpointError when the directory is in use or holds other files, or one of the run's files is not
  // its own, and ConfigError, with each key or data file that differs, when it holds a run with another config or data.
  RunWriter(const TrainOptions& options, const OpenConfig& config);

  // Returns the checkpoint to go on from; nothing for a run at its beginning.
  const std::optional<Checkpoint>& newest() const { return newest_; }
  bool ended() const;                                                   // whether it is the final one
  const DataRecord& data() const { return data_; }                      // of training
  const std::string& identity() const { return identity_; }             // of the run
  const std::vector<std::string>& damaged() const { return damaged_; }  // why newer checkpoints are set aside
  const std::vector<std::string>& remarks() const { return remarks_; }  // what else is set aside, or missing

  // Sets files aside, and writes config and data.
  void begin();
  // Appends a line to metrics.jsonl, which was cut before the first line that comes after the newest checkpoint. Does
  // nothing for a run that has ended and has its summary.
  void append(const Json& line, double seconds);
  void sync();  // flushes metrics.jsonl to disk

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
  bool lock(bool resume);  // returns whether there is a run
  void require_same_config(bool any_rate) const;
  void choose_checkpoint(bool any_rate);
  void require_own(bool is_own, const std::filesystem::path& file) const;
  void check_summary();
  void check_metrics();

  RunDirectory run_;
  OpenConfig config_;
  DataRecord data_;
  std::string identity_;
  std::optional<Checkpoint> newest_;
  std::vector<std::string> damaged_, remarks_;
  std::vector<std::filesystem::path> aside_;  // damaged checkpoints
  bool is_complete_ = false;                  // the summary is written, of a run that has ended
  std::uint64_t metrics_bytes_ = 0;           // of the lines that stay, and those that were appended
  bool ends_in_line_ = true;                  // of these bytes
  std::optional<DirectoryLock> lock_;
  std::optional<AppendFile> metrics_;
};

}  // namespace thimble
