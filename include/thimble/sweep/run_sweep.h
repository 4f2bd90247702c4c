// Trains the runs of a sweep in parallel processes of thimble train. A sweep directory holds sweep.json, with
// the state and the results, and for each run runs/NAME, its run directory, and runs/NAME.log, its output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "thimble/sweep/sweep_runs.h"

namespace thimble {

// An observer of a running sweep.
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

// Trains the runs that are not finished, each as `thimble train CONFIG OVERRIDES --out DIRECTORY --threads
// 1`, with --resume where its directory exists. A run that fails does not stop the others. After SIGINT or
// SIGTERM the runs get SIGTERM, so that they save their progress, and are waited for; after a second one,
// SIGKILL. Throws CheckpointError as recall_runs does, when another sweep uses the directory, or when a file
// cannot be written.
SweepResult run_sweep(const Sweep&, const SweepOptions& options = {});

}  // namespace thimble
