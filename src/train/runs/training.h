// Training in one precision.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/train/run_state.h"
#include "thimble/train/train.h"
#include "train/config/differences.h"
#include "train/files/stopwatch.h"
#include "train/runs/run_writer.h"
#include "train/step/trainer.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// A call of train(): the trainer, the run directory and the state. run() makes all steps; a caller that makes
// each step itself calls start(), then record() after each until it returns a value, and finish() with that.
class TrainingRun {
 public:
  // Opens the run in the directory of the options, if any, and resumes from it if they say so.
  TrainingRun(const OpenConfig& config, const TrainOptions& options);

  TrainResult run();

  // Return why training has ended; nothing if it has not.
  std::optional<Stopped> start();
  std::optional<Stopped> record(const StepReport& step);  // evaluates, logs and saves what is due
  TrainResult finish(Stopped stopped);

  // Saves a checkpoint to resume from, unless training has ended.
  void checkpoint();

  Trainer& trainer() { return trainer_; }
  const Trainer& trainer() const { return trainer_; }
  const RunState& state() const { return state_; }

 private:
  // Opens the run, to write it and to resume from it.
  void open(const TrainOptions& options);
  // Saves the checkpoint that the run would have in this state, if it was resumed from another one.
  void complete(std::optional<Stopped> stopped);
  // Copies what rank 0 has loaded to the other ranks.
  void share_state();
  double seconds() const { return seconds_before_ + timer_.seconds(); }
  // Appends a line to metrics.jsonl. Seconds come last, as only they differ between equal runs.
  void metrics(std::string_view split, const Json& report);
  void log_heads();
  void log_samples();
  void validate();
  std::optional<Stopped> ending() const;  // why training has ended; nothing if it has not
  void save_if_due(std::optional<Stopped> stopped);
  void prune(bool ended);
  // Saves a checkpoint to the path that the function of the writer returns, if there is a run.
  template <class... Arguments>
  void save(std::filesystem::path (RunWriter::*path)(Arguments...) const, Arguments... arguments);
  void load(const Checkpoint& checkpoint);
  std::vector<Difference> changes() const;  // of the config, since the checkpoint that is resumed
  void log_changes();                       // those that change training
  TrainResult result() const;
  // Loads the best weights, the result of a run with patience; returns false where they are the last, or cannot be read,
  // which is remarked.
  bool load_best();
  void add_references(TrainResult& done) const;  // what n-grams of the training text reach on the same splits

  const Stopwatch timer_;
  const OpenConfig config_;
  const RunDirectory directory_;
  const std::int64_t stop_after_;
  TrainObserver silent_;
  TrainObserver& observer_;
  Ranks& ranks_;
  Trainer trainer_;
  const std::int64_t evaluate_every_;  // steps; 0: only after the last
  HeadLog head_log_;                   // empty: heads are not logged
  std::optional<RunWriter> writer_;    // of rank 0, if there is a run
  RunState state_;
  double seconds_before_ = 0;
};

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
