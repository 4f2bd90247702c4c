// Trains the runs of a sweep in parallel processes of thimble train. Several processes may do so at once in one
// directory: each takes runs that no other one has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "program/sweep/sweep_runs.h"
#include "program/sweep/sweep_state.h"

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
  std::int64_t max_runs = 0;    // runs to start before returning, without waiting for others; 0: no limit
  bool repeat_failures = true;  // train runs again that failed before
};

struct SweepResult {
  std::filesystem::path directory;
  std::vector<SweepRun> runs;
  bool interrupted = false;
  std::string submitted;  // see RunQueue; unless empty, nothing was trained here
};

// Trains the runs that are not finished, unless submitted jobs are to train them, each as `thimble train CONFIG OVERRIDES
// --out DIRECTORY --threads 1`, with --resume where its directory exists. A run that fails does not stop the others. After one of
// stop_signals() the runs get SIGINT, so that they save their progress, and are waited for; after SIGINT or SIGTERM
// again, SIGKILL. Throws CheckpointError as require_same_sweep does, or when a file cannot be written.
SweepResult run_sweep(const Sweep&, const SweepOptions& options = {});

}  // namespace thimble
