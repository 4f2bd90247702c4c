// The runs of a sweep and their results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/sweep/sweep.h"
#include "thimble/train/json.h"
#include "thimble/train/statistics.h"

namespace thimble {

enum class RunStatus {
  waiting,
  running,        // claimed by a process that trains it
  interrupted,    // started, and not running now
  done,           // exit status 0
  missed_target,  // trained to the end, exit status 1
  failed,
  stopped,  // by halving
};
inline constexpr int kDiverged = 3;  // exit status of training that met a number that is not finite

// Returns "done", "missed target" and so on, as in sweep.json.
std::string_view name(RunStatus);

struct SweepRun {
  std::size_t setting = 0;  // index
  OpenConfig config;        // with the seed of the run, and one thread
  std::string name;         // of its directory, such as 003-heads_2-seed_42
  RunStatus status = RunStatus::waiting;
  std::optional<int> exit;  // exit status
  std::string error;        // last message of the log, if the run failed or missed its target
  Json result = nullptr;    // summary.json, once it exists
  std::string identity{};   // of the run, see run_identity()
  std::string remark{};     // what to know of its files

  std::filesystem::path checkpoint{};  // the newest one, whose losses were read

  std::vector<double> losses;   // validation losses at the steps of halving that it has reached
  std::int64_t stop_after = 0;  // the next of these steps; 0: it trains to the end
  bool reached = false;         // whether it waits there for others
};

// Returns a run for every setting and seed; the seed varies fastest.
std::vector<SweepRun> plan_runs(const Sweep&);

// Returns whether the run has ended: it is done, has missed its target, has failed or was stopped.
bool is_finished(const SweepRun&);

// Returns how many runs are finished.
std::int64_t finished(const std::vector<SweepRun>&);

// Returns runs/sweep-NAME-HASH, with the sweep's file name and a hash of all its configs, so that the same
// sweep finds its runs again.
std::filesystem::path sweep_directory(const Sweep&, const std::vector<SweepRun>&);

// Metrics that are averaged over seeds: JSON pointers into summary.json.
inline constexpr std::string_view kSweepMetrics[] = {
    "/validation/loss",
    "/validation/accuracy",
    "/validation/sequence_accuracy",
    "/test/loss",
    "/test/accuracy",
    "/test/sequence_accuracy",
    "/steps",
    "/seconds",
};

// Returns the spread of a metric over the results of one setting.
Spread metric_spread(const std::vector<SweepRun>&, std::size_t setting, std::string_view metric);

// Returns {"sweep", "config", "overrides", "halving": {"steps", "reduction_factor"},
// "settings": [{"overrides", "config_hash", "runs": [{"seed", "directory", "run", "status", "exit", "error", "result",
// "halving_losses", "remark"}], "count", "mean", "sd", "min", "max"}], "failed"}; "run" is the identity; with halving, and
// with a remark, only what belongs to it.
Json to_json(const Sweep&, const std::vector<SweepRun>&, const std::filesystem::path& directory);

// The format of a sweep's directory, which sweep.json states first, and then what to_json() returns.
inline constexpr const char* kSweepFormat = "thimble sweep 3";

// Returns what sweep.json holds.
Json sweep_json(const Sweep&, const std::vector<SweepRun>&, const std::filesystem::path& directory);
// Returns sweep.json; null if it is missing, damaged or of another version. Throws FileError if it cannot be read.
Json read_sweep_json(const std::filesystem::path& directory);
bool is_sweep(const std::filesystem::path& directory);  // whether it is there
// Returns that there is none, with the command that writes it.
std::string unreadable_sweep_json(const std::filesystem::path& directory);

// Throws CheckpointError when the directory exists but is not that of the sweep: it has other settings, seeds, configs
// or data, or files that are none of a sweep's. A sweep.json that is lost or damaged is none of these.
void require_same_sweep(const std::filesystem::path& directory, const Sweep&, const std::vector<SweepRun>&);

}  // namespace thimble
