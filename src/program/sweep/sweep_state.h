// The state of a sweep, as the files of its directory have it: sweep.json is written from them. For each run,
// runs/NAME is its run directory, runs/NAME.log its output, runs/NAME.json says why it failed, if it did, and
// run_queue.h which process trains it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "program/sweep/sweep_runs.h"

namespace thimble {

// Returns runs/NAME in the directory of a sweep, with the ending of one of its files.
std::filesystem::path run_path(const std::filesystem::path& directory, const SweepRun&,
                               const std::string& ending = "");

// Records why a run failed.
void write_failure(const std::filesystem::path& directory, const SweepRun&, int exit,
                   const std::string& error);

// Returns the first line of the last message in the log of a run, without the program's name, or the last line that is
// not blank if there is no message.
std::string last_message(const std::filesystem::path& directory, const SweepRun&);

// Reads the directory of a run that is not finished, and sets its status, result and losses. Returns whether the run is
// finished now. A summary that is damaged or of another run counts for nothing, with a remark.
bool read_run(const std::filesystem::path& directory, const Halving&, SweepRun&);

// Sets the state of all runs that are not finished. Returns whether there are new results.
bool read_state(const std::filesystem::path& directory, const Halving&, std::vector<SweepRun>&);

// Makes the runs that have failed wait again, except, with halving, those that diverged, which count there.
void forget_failures(const std::filesystem::path& directory, const Halving&, std::vector<SweepRun>&);

// Writes sweep.json, whole, until it holds every record, since another process may write it too.
void write_sweep_json(const std::filesystem::path& directory, const Sweep&, std::vector<SweepRun>&);

// A sweep as its directory has it, without configs.
struct RecordedSweep {
  Sweep sweep;
  std::vector<SweepRun> runs;
};

// Reads sweep.json and the state of the runs. Throws CheckpointError if the directory is not that of a sweep.
RecordedSweep open_sweep(const std::filesystem::path& directory);

}  // namespace thimble
