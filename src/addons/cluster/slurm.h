// Sweeps as job arrays of Slurm: each task is a `thimble sweep` that trains its share of the runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "program/sweep/run_queue.h"

namespace thimble {

// Writes the directory of the sweep and submits a job array with a task for each missing run, or for several
// where MaxArraySize permits no more tasks; with halving, an array for each of its steps, which starts when the
// one before has ended. A task that gets USR1, a minute before its time limit unless the options say otherwise,
// saves its runs and is queued again. Throws CheckpointError as run_sweep does, when runs are still queued, and
// when a command of Slurm fails.
Submission submit_sweep(const Sweep&, const SweepOptions&, const SubmitOptions&);

// Returns the state of the jobs that were submitted for a sweep and that Slurm still has, such as "4 pending,
// 2 running"; "" if there are none, or no Slurm on this machine.
std::string slurm_state(const std::filesystem::path& directory);

}  // namespace thimble
