// Trains the runs of a sweep, in processes of thimble train side by side. A directory holds sweep.json, the
// state and the result, and for each run runs/NAME, a run directory, and runs/NAME.log, what it printed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "thimble/sweep/sweep_runs.h"

namespace thimble {

// An observer of a sweep that is going on.
class SweepObserver {
 public:
  virtual ~SweepObserver() = default;
  virtual void on_start(const std::vector<SweepRun>&, const std::filesystem::path& /*directory*/,
                        std::int64_t /*jobs*/) {}
  virtual void on_finished(const std::vector<SweepRun>&, const SweepRun&, double /*seconds*/) {}
  virtual void on_interrupt(std::size_t /*running*/) {}
};

struct SweepOptions {
  std::filesystem::path directory;                   // empty: sweep_directory
  std::int64_t jobs = 0;                             // runs at a time; 0: as many as usable_cores()
  std::filesystem::path program = "/proc/self/exe";  // thimble
  SweepObserver* observer = nullptr;
};

struct SweepResult {
  std::filesystem::path directory;
  std::vector<SweepRun> runs;
  bool interrupted = false;
};

// Trains what is not trained yet, each run as `thimble train CONFIG OVERRIDES --out DIRECTORY --threads 1`,
// with --resume where its directory exists. A run that fails does not stop the others. At SIGINT or SIGTERM
// the runs get SIGTERM, so that they can save what they have, and are waited for; at a second one SIGKILL.
// Throws CheckpointError as recall_runs does, when another sweep is at work in the directory, or when
// something cannot be written.
SweepResult run_sweep(const Sweep&, const SweepOptions& options = {});

}  // namespace thimble
