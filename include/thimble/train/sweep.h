// Sweeps: many runs of thimble train, in processes side by side. A directory holds sweep.json, the state and
// the result, and for each run runs/NAME, a run directory, and runs/NAME.log, what it printed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/config/sweep.h"
#include "thimble/core/json.h"

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

// Every setting with every seed, seeds fastest.
std::vector<SweepRun> plan_runs(const Sweep&);

// runs/sweep-NAME-HASH, NAME being the sweep's file name and HASH of all its configs: the same for the same
// sweep, so that it finds its runs again.
std::filesystem::path sweep_directory(const Sweep&, const std::vector<SweepRun>&);

// Of the values of a metric over seeds.
struct Spread {
  std::int64_t count = 0;
  double mean = 0, min = 0, max = 0;
  std::optional<double> sd;  // of a sample: the squares are divided by count - 1; none for one value
};
Spread spread(const std::vector<double>& values);

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

// Over the results of one setting.
Spread metric_spread(const std::vector<SweepRun>&, std::size_t setting, std::string_view metric);

// What sweep.json holds: {"sweep", "config", "overrides", "settings": [{"overrides", "runs": [{"seed",
// "directory", "status", "exit", "error", "result"}], "mean", "sd", "min", "max"}], "failed"}.
Json to_json(const Sweep&, const std::vector<SweepRun>&, const std::filesystem::path& directory);

// Gives the runs what is known of them in `directory`: nothing if it is missing or empty, else what a sweep
// left there. Runs that it finished are so again; all others wait. Throws CheckpointError when the directory
// is not that of a sweep, or when settings, seeds or configs are other ones, saying which.
void recall_runs(const std::filesystem::path& directory, const Sweep&, std::vector<SweepRun>&);

// Told what happens while a sweep goes on.
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
