// Who trains which run of a sweep, as several processes may at once in one directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "program/sweep/run_sweep.h"

namespace thimble {

// A run that this process trains, for the lifetime of the object.
class TakenRun {
 public:
  virtual ~TakenRun() = default;
  // Shows that this process is alive, which it must several times in RunQueue::lease() seconds; returns whether the run is
  // still its own.
  virtual bool renew() { return true; }
};

struct SubmitOptions {
  std::vector<std::string> task;     // `thimble sweep FILE …`, the command of a task, without --max-runs
  std::vector<std::string> options;  // further ones of the command that submits
  bool dry_run = false;              // nothing is written or submitted
};

// Submitted jobs, or those that would be.
struct Submission {
  // An array of tasks.
  struct Array {
    std::string id;       // empty: not submitted
    std::string command;  // that submits it, in a shell
    std::int64_t tasks = 0, runs_per_task = 0;
  };
  std::filesystem::path directory;  // of the sweep
  std::vector<Array> arrays;        // none: no run is missing
  std::string script;               // of a task
};

// The runs of a sweep, on one machine: a process takes a run by the lock of a file RUN.lock. An add-on puts another one in
// its place, for processes on several machines and for jobs that wait elsewhere.
class RunQueue {
 public:
  virtual ~RunQueue() = default;
  // Takes the run with that directory; returns nullptr while another process has it. Throws FileError when that cannot be
  // written.
  virtual std::unique_ptr<TakenRun> take(const std::filesystem::path& run);
  // Returns the process that has the run, "process 123 on host"; "" if none has.
  virtual std::string holder(const std::filesystem::path& run);
  // Returns the state of jobs that were submitted for the sweep in a directory, such as "4 pending"; "" if there are none.
  virtual std::string submitted(const std::filesystem::path& /*directory*/) { return ""; }
  // Submits jobs for the runs that are missing. Throws ConfigError if the queue has none, CheckpointError as run_sweep does
  // and if jobs cannot be submitted.
  virtual Submission submit(const Sweep&, const SweepOptions&, const SubmitOptions&);
  // Returns the seconds without a sign of life after which a process loses its runs: longer than the minute for which NFS
  // may show old times of files.
  virtual double lease() const { return 120; }
};

RunQueue& run_queue();
void set_run_queue(RunQueue&);

}  // namespace thimble
