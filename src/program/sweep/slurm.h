// Sweeps as job arrays of Slurm: each task is a `thimble sweep` that trains its share of the runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "program/sweep/run_sweep.h"

namespace thimble {

struct SlurmOptions {
  std::vector<std::string> task;    // `thimble sweep FILE …`, the command of a task, without --max-runs
  std::vector<std::string> sbatch;  // further options of sbatch
  bool submit = true;               // false: nothing is written, sbatch is not called
};

// A submitted job array, or one that would be.
struct SlurmArray {
  std::string id;                    // of the job; empty: not submitted
  std::vector<std::string> command;  // of sbatch
  std::int64_t tasks = 0, runs_per_task = 0;
};

struct SlurmSubmission {
  std::filesystem::path directory;  // of the sweep
  std::vector<SweepRun> runs;
  std::vector<SlurmArray> arrays;  // none: no run is missing
  std::string script;              // slurm.sh in the directory of the sweep
};

// Writes the directory of the sweep and submits a job array with a task for each missing run, or for several
// where MaxArraySize permits no more tasks; with halving, an array for each of its steps, which starts when the
// one before has ended. A task that gets USR1, a minute before its time limit unless the options say otherwise,
// saves its runs and is queued again. Throws CheckpointError as run_sweep does, when runs are still queued, and
// when a command of Slurm fails.
SlurmSubmission submit_sweep(const Sweep&, const SweepOptions&, const SlurmOptions&);

// Returns the state of the jobs that were submitted for a sweep and that Slurm still has, such as "4 pending,
// 2 running"; "" if there are none, or no Slurm on this machine.
std::string slurm_state(const std::filesystem::path& directory);

// Returns the words as a command of a POSIX shell.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace thimble
