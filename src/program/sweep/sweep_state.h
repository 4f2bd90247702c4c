// The state of a sweep, as the files of its directory have it: sweep.json is written from them. For each run,
// runs/NAME is its run directory, runs/NAME.log its output, runs/NAME.json a record of how it ended, and
// run_queue.h says which process trains it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "program/sweep/sweep_runs.h"

namespace thimble {

// Returns runs/NAME in the directory of a sweep, with the ending of one of its files.
std::filesystem::path run_path(const std::filesystem::path& directory, const SweepRun&,
                               const std::string& ending = "");

// Records how a run ended, or how far it got.
void write_record(const std::filesystem::path& directory, const SweepRun&);

// Reads the record of a run that is not finished and sets its status, result and so on. Returns whether the
// run is finished now. A record that was changed or is of another run counts for nothing, with a remark, as does that of
// a run whose summary is missing or was changed.
bool read_record(const std::filesystem::path& directory, SweepRun&);

// Sets the state of all runs that are not finished. Returns whether there are new records.
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
