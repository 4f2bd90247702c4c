#include "program/sweep/run_sweep.h"

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <limits>
#include <map>
#include <set>

#include "program/sweep/run_queue.h"
#include "program/sweep/sweep_state.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/run_directory.h"
#include "train/files/lock.h"
#include "train/files/path.h"
#include "train/files/process.h"
#include "train/files/progress.h"
#include "train/files/stopwatch.h"
#include "train/files/thread_pool.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::hours kLeftOver{1};  // the age of temporary files that nobody still writes

class Runner {
 public:
  Runner(const Sweep& sweep, const SweepOptions& options, SweepResult& result)
      : sweep_(sweep),
        options_(options),
        result_(result),
        finished_(finished(result.runs)),
        progress_("training runs", static_cast<double>(std::ssize(result.runs) - finished_)) {}
  ~Runner() {  // children are left only after an error
    signal_all(SIGINT);
    for (const auto& [child, running] : children_) ::waitpid(child, nullptr, 0);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Trains runs until none is left that this process may train; without a limit on their number, also waits
  // for the runs of other processes, which may end.
  void run(std::size_t jobs) {
    save();
    for (int idle = kRefresh / 2;;) {
      const bool may_start = !result_.interrupted && started_ < limit();
      if (may_start) start_free(jobs);
      if (children_.empty() && (!may_start || !others_run())) return save();
      idle = children_.empty() ? std::min(2 * idle, kMaxIdle) : kRefresh;
      const int signal = signals_.wait(idle);
      if (signal != 0 && signal != SIGCHLD) interrupt(signal);
      renew();
      collect();  // after a timeout too, as SIGCHLD may have been lost
      if (read_state(result_.directory, sweep_.halving, result_.runs)) save();
      report();
    }
  }

 private:
  static constexpr int kRefresh = 1000, kMaxIdle = 10000;  // milliseconds

  struct Running {
    SweepRun* run;
    std::int64_t stop_after;
    std::unique_ptr<TakenRun> taken;
    Stopwatch timer;
  };

  fs::path directory(const SweepRun& run) const { return run_path(result_.directory, run); }
  fs::path log(const SweepRun& run) const { return run_path(result_.directory, run, ".log"); }

  std::int64_t limit() const {
    return options_.max_runs > 0 ? options_.max_runs : std::numeric_limits<std::int64_t>::max();
  }

  bool others_run() const {
    return options_.max_runs == 0 &&
           std::ranges::find(result_.runs, RunStatus::running, &SweepRun::status) != result_.runs.end();
  }

  // Starts free runs, as many as there is room for.
  void start_free(std::size_t jobs) {
    for (SweepRun& run : result_.runs) {
      if (children_.size() >= jobs || started_ >= limit()) return;
      if (is_finished(run) || run.status == RunStatus::running || run.reached || left_.contains(&run))
        continue;
      std::unique_ptr<TakenRun> taken = run_queue().take(directory(run));
      // Before that, another process may have finished the run, or have been killed while its child is
      // still saving.
      if (taken == nullptr || DirectoryLock::is_held(directory(run)))
        run.status = RunStatus::running;
      else if (!read_run(result_.directory, sweep_.halving, run))
        start(run, std::move(taken), jobs);
    }
  }

  void start(SweepRun& run, std::unique_ptr<TakenRun> taken, std::size_t jobs) {
    const SweepSetting& setting = sweep_.settings[run.setting];
    std::vector<std::string> command{options_.program.string(), "train", setting.file};
    command.insert(command.end(), sweep_.overrides.begin(), sweep_.overrides.end());
    command.insert(command.end(), setting.overrides.begin(), setting.overrides.end());
    command.push_back(fmt::format("train.seed={}", run.config.train.seed));
    for (const char* option : {"--threads", "1", "--quiet", "--out"}) command.emplace_back(option);
    command.push_back(directory(run).string());
    if (run.stop_after > 0) command.push_back(fmt::format("--stop-after={}", run.stop_after));
    if (fs::exists(directory(run))) command.emplace_back("--resume");
    // Allocates the entry first, so that a child cannot run without one.
    std::map<pid_t, Running> entry;
    entry.emplace(0,
                  Running{.run = &run, .stop_after = run.stop_after, .taken = std::move(taken), .timer = {}});
    auto child = entry.extract(0);
    child.key() = start_process(command, log(run), static_cast<std::int64_t>(jobs));
    children_.insert(std::move(child));
    run.status = RunStatus::running;
    ++started_;
  }

  // Finishes the runs whose process has ended.
  void collect() {
    for (auto child = children_.begin(); child != children_.end();) {
      const std::optional<int> exit = exit_status(child->first);
      if (!exit) {
        ++child;
        continue;
      }
      Running ended = std::move(child->second);
      child = children_.erase(child);
      if (!ended.taken->renew()) continue;  // another process has the run
      finish(*ended.run, ended.stop_after, *exit);
      ended.taken.reset();
      save();
      if (options_.observer != nullptr && (is_finished(*ended.run) || left_.contains(ended.run)))
        options_.observer->on_finished(result_.runs, *ended.run, ended.timer.seconds());
    }
  }

  void finish(SweepRun& run, std::int64_t stop_after, int exit) {
    constexpr int kInterrupted = 130, kSignal = 128;  // of thimble train; added to a signal's number
    const auto ended_by = [&](int signal) { return exit == kSignal + signal; };
    const bool stopped = ended_by(SIGKILL) || std::ranges::any_of(kStopSignals, ended_by);
    if (exit == kInterrupted || (result_.interrupted && stopped)) {
      run.status = RunStatus::interrupted;
      left_.insert(&run);
      return;
    }
    run.remark.clear();
    const fs::path& sweep = result_.directory;
    fs::remove(run_path(sweep, run, ".json"));
    if (read_run(sweep, sweep_.halving, run)) return;
    const bool is_damaged = exit == 0 && !run.remark.empty();
    if (exit == 0 && !is_damaged && !run.losses.empty() &&
        sweep_.halving.steps[run.losses.size() - 1] == stop_after) {
      run.status = RunStatus::waiting;
      return;
    }
    std::string error = is_damaged ? run.remark : last_message(sweep, run);
    if (error.empty())
      error = exit > kSignal ? fmt::format("ended by signal {}", exit - kSignal)
                             : fmt::format("exit status {}", exit);
    write_failure(sweep, run, exit, error);
    read_run(sweep, sweep_.halving, run);
  }

  // Renews what this process has taken, several times in a lease. A run that another process has taken over is stopped at
  // once, so that it does not write to its directory.
  void renew() {
    if (renewed_.seconds() < run_queue().lease() / 8) return;
    renewed_ = Stopwatch();
    for (const auto& [child, running] : children_)
      if (!running.taken->renew()) ::kill(child, SIGKILL);
  }

  // Reports progress: finished runs, plus the finished share of each run in training.
  void report() {
    auto done = static_cast<double>(finished(result_.runs) - finished_);
    for (const auto& [child, running] : children_) {
      const auto steps = static_cast<double>(running.run->config.train.steps);
      done += static_cast<double>(RunDirectory(directory(*running.run)).last_step()) / steps;
    }
    if (done <= reported_) return;
    progress_.advance(done - reported_);
    reported_ = done;
  }

  void interrupt(int signal) {
    const bool again = signal == first_signal_ && insists(signal);
    if (!insists(first_signal_)) first_signal_ = signal;
    if (result_.interrupted && !again) return;  // Slurm and its task may both send one
    signal_all(again ? SIGKILL : SIGINT);
    result_.interrupted = true;
    if (options_.observer != nullptr) options_.observer->on_interrupt(children_.size());
  }

  void signal_all(int signal) const {
    for (const auto& [child, running] : children_) ::kill(child, signal);
  }

  void save() { write_sweep_json(result_.directory, sweep_, result_.runs); }

  const Sweep& sweep_;
  const SweepOptions& options_;
  SweepResult& result_;
  const std::int64_t finished_;  // runs, before the start
  ProgressCounter progress_;
  double reported_ = 0;
  SignalQueue signals_;
  std::map<pid_t, Running> children_;
  std::int64_t started_ = 0;
  int first_signal_ = 0;
  std::set<const SweepRun*> left_;  // interrupted, by this process or by themselves
  Stopwatch renewed_;
};

}  // namespace

SweepResult run_sweep(const Sweep& sweep, const SweepOptions& options) {
  SweepResult result;
  result.runs = plan_runs(sweep);
  result.directory = options.directory;
  if (result.directory.empty()) result.directory = sweep_directory(sweep, result.runs);
  require_utf8(result.directory);
  require_same_sweep(result.directory, sweep, result.runs);
  const std::int64_t jobs = options.jobs > 0 ? options.jobs : usable_cores();
  try {
    fs::create_directories(result.directory / "runs");
    remove_temporary_files(result.directory, kLeftOver);
    read_state(result.directory, sweep.halving, result.runs);
    if (options.max_runs == 0) result.submitted = run_queue().submitted(result.directory);
    if (!result.submitted.empty()) {
      write_sweep_json(result.directory, sweep, result.runs);
      return result;
    }
    if (options.repeat_failures) forget_failures(result.directory, sweep.halving, result.runs);
    if (options.observer != nullptr) options.observer->on_start(result.runs, result.directory, jobs);
    Runner(sweep, options, result).run(static_cast<std::size_t>(jobs));
  } catch (const fs::filesystem_error& e) {
    throw CheckpointError(fmt::format("{}: cannot be created: {}", result.directory.string(),
                                      system_message(e.code().value())));
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
  return result;
}

}  // namespace thimble
