#include "thimble/sweep/run_sweep.h"

#include <sys/wait.h>

#include <charconv>
#include <csignal>
#include <fstream>
#include <map>

#include "thimble/core/error.h"
#include "thimble/core/file.h"
#include "thimble/core/json.h"
#include "thimble/core/lock.h"
#include "thimble/core/path.h"
#include "thimble/core/process.h"
#include "thimble/core/progress.h"
#include "thimble/core/stopwatch.h"
#include "thimble/core/thread_pool.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

// Returns the first line of the last message in a log, without the program's name, or the last line that is
// not blank if there is no message.
std::string last_message(const fs::path& file) {
  const std::string program = "\nthimble: ";
  std::string text = "\n";
  text += read_file(file);
  const std::size_t end = text.find_last_not_of("\r\n "), message = text.rfind(program);
  if (end == std::string::npos) return "";
  const std::size_t begin =
      message == std::string::npos ? text.find_last_of("\r\n", end) + 1 : message + program.size();
  return text.substr(begin, std::min(text.find_first_of("\r\n", begin), end + 1) - begin);
}

// Returns the step of the last complete line of a metrics.jsonl; 0 when there is none near its end.
std::int64_t last_step(const fs::path& metrics) {
  constexpr std::streamoff kEnd = 1 << 16;
  constexpr std::string_view kStart = R"({"step":)";
  std::ifstream file(metrics, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (size <= 0) return 0;
  std::string text(static_cast<std::size_t>(std::min(size, kEnd)), '\0');
  file.seekg(size - std::ssize(text));
  file.read(text.data(), std::ssize(text));
  const std::size_t end = text.rfind('\n');
  const std::size_t start = end == std::string::npos ? end : text.rfind(kStart, end);
  std::int64_t step = 0;
  if (start != std::string::npos)
    std::from_chars(text.data() + start + kStart.size(), text.data() + end, step);
  return step;
}

class Runner {
 public:
  Runner(const Sweep& sweep, const SweepOptions& options, SweepResult& result)
      : sweep_(sweep),
        options_(options),
        result_(result),
        finished_(finished(result.runs)),
        progress_("training runs", static_cast<double>(std::ssize(result.runs) - finished_)) {}
  ~Runner() {  // children are left only after an error
    signal_all(SIGTERM);
    for (const auto& [child, running] : children_) ::waitpid(child, nullptr, 0);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void run(std::size_t jobs) {
    save();
    auto next = result_.runs.begin();
    for (;;) {
      while (!result_.interrupted && children_.size() < jobs && next != result_.runs.end()) {
        if (next->status == RunStatus::waiting) start(*next);
        ++next;
      }
      if (children_.empty()) return;
      constexpr int kRefresh = 1000;  // milliseconds
      const int signal = signals_.wait(kRefresh);
      if (signal == SIGINT || signal == SIGTERM) interrupt();
      collect();  // after a timeout too, as SIGCHLD may have been lost
      report();
    }
  }

 private:
  struct Running {
    SweepRun* run;
    Stopwatch timer;
  };

  fs::path directory(const SweepRun& run) const { return result_.directory / "runs" / run.name; }
  fs::path log(const SweepRun& run) const { return result_.directory / "runs" / (run.name + ".log"); }

  void start(SweepRun& run) {
    const SweepSetting& setting = sweep_.settings[run.setting];
    std::vector<std::string> command{options_.program.string(), "train", setting.file};
    command.insert(command.end(), sweep_.overrides.begin(), sweep_.overrides.end());
    command.insert(command.end(), setting.overrides.begin(), setting.overrides.end());
    command.push_back(fmt::format("train.seed={}", run.config.train.seed));
    for (const char* option : {"--threads", "1", "--quiet", "--out"}) command.emplace_back(option);
    command.push_back(directory(run).string());
    if (fs::exists(directory(run))) command.emplace_back("--resume");
    // Allocates the entry first, so that a child cannot run without one.
    auto child = std::map<pid_t, Running>{{0, {.run = &run, .timer = {}}}}.extract(0);
    child.key() = start_process(command, log(run));
    children_.insert(std::move(child));
  }

  // Finishes the runs whose process has ended.
  void collect() {
    for (auto child = children_.begin(); child != children_.end();) {
      const std::optional<int> exit = exit_status(child->first);
      if (!exit) {
        ++child;
        continue;
      }
      const Running ended = child->second;
      child = children_.erase(child);
      finish(*ended.run, *exit);
      save();
      if (options_.observer != nullptr)
        options_.observer->on_finished(result_.runs, *ended.run, ended.timer.seconds());
    }
  }

  void finish(SweepRun& run, int exit) {
    constexpr int kInterrupted = 130, kSignal = 128;  // of thimble train; added to a signal's number
    const fs::path summary = directory(run) / "summary.json";
    const bool stopped = result_.interrupted && (exit == kSignal + SIGTERM || exit == kSignal + SIGKILL);
    run.exit = exit;
    if (exit == kInterrupted || stopped)
      run.status = RunStatus::interrupted;
    else if (exit > 1 || !fs::exists(summary))
      run.status = RunStatus::failed;
    else
      run.status = exit == 0 ? RunStatus::done : RunStatus::missed_target;
    if (run.status == RunStatus::failed || run.status == RunStatus::missed_target)
      run.error = last_message(log(run));
    if (run.status == RunStatus::failed && run.error.empty())
      run.error = exit > kSignal ? fmt::format("ended by signal {}", exit - kSignal)
                                 : fmt::format("exit status {}", exit);
    if (run.status == RunStatus::done || run.status == RunStatus::missed_target) read_result(run, summary);
  }

  static void read_result(SweepRun& run, const fs::path& summary) {
    try {
      run.result = read_json(summary);
    } catch (const FileError& e) {
      run.status = RunStatus::failed;
      run.error = e.what();
    }
  }

  // Reports progress: finished runs, plus the finished share of each run in training.
  void report() {
    auto done = static_cast<double>(finished(result_.runs) - finished_);
    for (const auto& [child, running] : children_) {
      const auto steps = static_cast<double>(running.run->config.train.steps);
      done += static_cast<double>(last_step(directory(*running.run) / "metrics.jsonl")) / steps;
    }
    if (done <= reported_) return;
    progress_.advance(done - reported_);
    reported_ = done;
  }

  void interrupt() {
    signal_all(result_.interrupted ? SIGKILL : SIGTERM);
    result_.interrupted = true;
    if (options_.observer != nullptr) options_.observer->on_interrupt(children_.size());
  }

  void signal_all(int signal) const {
    for (const auto& [child, running] : children_) ::kill(child, signal);
  }

  void save() const {
    write_file(result_.directory / "sweep.json",
               json_text(to_json(sweep_, result_.runs, result_.directory), 2) + "\n");
  }

  const Sweep& sweep_;
  const SweepOptions& options_;
  SweepResult& result_;
  const std::int64_t finished_;  // runs, before the start
  ProgressCounter progress_;
  double reported_ = 0;
  SignalQueue signals_;
  std::map<pid_t, Running> children_;
};

}  // namespace

SweepResult run_sweep(const Sweep& sweep, const SweepOptions& options) {
  SweepResult result;
  result.runs = plan_runs(sweep);
  result.directory = options.directory;
  if (result.directory.empty()) result.directory = sweep_directory(sweep, result.runs);
  require_utf8(result.directory);
  recall_runs(result.directory, sweep, result.runs);
  const std::int64_t jobs = options.jobs > 0 ? options.jobs : usable_cores();
  try {
    fs::create_directories(result.directory / "runs");
    const DirectoryLock lock(result.directory);
    remove_temporary_files(result.directory);
    if (options.observer != nullptr) options.observer->on_start(result.runs, result.directory, jobs);
    Runner(sweep, options, result).run(static_cast<std::size_t>(jobs));
  } catch (const fs::filesystem_error& e) {
    throw CheckpointError(
        fmt::format("{}: cannot be created: {}", result.directory.string(), e.code().message()));
  } catch (const FileError& e) {
    throw CheckpointError(e.what());
  }
  return result;
}

}  // namespace thimble
