// The runs of a sweep: what it plans, and what comes of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/core/statistics.h"
#include "thimble/sweep/sweep.h"

namespace thimble {

enum class RunStatus {
  waiting,        // not finished yet
  done,           // exit status 0
  missed_target,  // trained to the end, exit status 1
  failed,
  interrupted,
};
std::string_view name(RunStatus);

struct SweepRun {
  std::size_t setting = 0;  // index
  Config config;            // what it trains: with its seed, on one thread
  std::string name;         // of its directory, such as 003-heads_2-seed_42
  RunStatus status = RunStatus::waiting;
  std::optional<int> exit;  // its exit status
  std::string error;        // the last line it printed, if it failed or missed its target
  Json result = nullptr;    // its summary.json, once there is one
};

// Returns every setting with every seed, seeds fastest.
std::vector<SweepRun> plan_runs(const Sweep&);

// Returns how many runs are not waiting any more.
std::int64_t finished(const std::vector<SweepRun>&);

// Returns runs/sweep-NAME-HASH, NAME being the sweep's file name and HASH of all its configs: the same for
// the same sweep, so that it finds its runs again.
std::filesystem::path sweep_directory(const Sweep&, const std::vector<SweepRun>&);

// What is averaged over seeds: JSON pointers into a summary.json.
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

// Returns what sweep.json holds: {"sweep", "config", "overrides", "settings": [{"overrides", "runs":
// [{"seed", "directory", "status", "exit", "error", "result"}], "mean", "sd", "min", "max"}], "failed"}.
Json to_json(const Sweep&, const std::vector<SweepRun>&, const std::filesystem::path& directory);

// Gives the runs what is known of them in `directory`: nothing if it is missing or empty, else what a sweep
// left there. Runs that it finished are so again; all others wait. Throws CheckpointError when the directory
// is not that of a sweep, or when settings, seeds or configs are other ones, saying which.
void recall_runs(const std::filesystem::path& directory, const Sweep&, std::vector<SweepRun>&);

}  // namespace thimble
