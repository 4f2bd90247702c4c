#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "program/cli/cli.h"
#include "program/cli/text/progress_meter.h"
#include "program/cli/text/sweep_table.h"
#include "program/compare/page.h"
#include "program/sweep/run_queue.h"
#include "program/sweep/run_sweep.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "train/files/process.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"

namespace thimble::cli {

namespace {

// Returns whether a run has ended well: it is done, or halving has stopped it.
bool is_done(const SweepRun& run) {
  return run.status == RunStatus::done || run.status == RunStatus::stopped;
}

// Prints a line for each finished run; quiet: for each that failed or missed its target.
class SweepProgress : public SweepObserver {
 public:
  SweepProgress(const Sweep& sweep, bool quiet) : labels_(setting_labels(sweep)), quiet_(quiet) {}

  void on_start(const std::vector<SweepRun>& runs, const std::filesystem::path& directory,
                std::int64_t jobs) override {
    before_ = finished(runs);
    if (quiet_) return;
    print_err("{}: {} settings, {} runs, {} already finished, {} in parallel\n", directory.string(),
              labels_.size(), runs.size(), before_, jobs);
  }

  void on_finished(const std::vector<SweepRun>& runs, const SweepRun& run, double seconds) override {
    const auto now = finished(runs);
    all_done_ &= is_done(run);
    std::string line = fmt::format("{} seed {}: ", labels_[run.setting], run.config.train.seed);
    if (run.status != RunStatus::done) line += fmt::format("{}: {}", name(run.status), run.error);
    if (quiet_) {
      const bool failed = run.status == RunStatus::failed || run.status == RunStatus::missed_target;
      if (failed) print_err("thimble: {}\n", line);
      return;
    }
    if (run.status == RunStatus::done && run.result.contains("test")) {
      const auto& test = run.result["test"];
      line += fmt::format("test loss {:.6f}, tokens {:.2f} %", test["loss"].get<double>(),
                          100 * test["accuracy"].get<double>());
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    const auto left = static_cast<double>(runs.size()) - static_cast<double>(now);
    const double per_run = elapsed.count() / static_cast<double>(std::max<std::ptrdiff_t>(1, now - before_));
    print_err("{}/{}  {}  {:.1f} s  ({} elapsed, {} left)\n", now, runs.size(), line, seconds,
              format_duration(elapsed.count()), format_duration(per_run * left));
  }

  // Returns whether every run of this process is done.
  bool all_done() const { return all_done_; }

  void on_interrupt(std::size_t running) override {
    if (quiet_) return;
    print_err("interrupted: waiting for {} to save; interrupt again to stop at once\n",
              counted(static_cast<std::int64_t>(running), "run"));
  }

 private:
  const std::vector<std::string> labels_;
  const bool quiet_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::ptrdiff_t before_ = 0;
  bool all_done_ = true;
};

struct SweepArguments {
  std::string file, directory, html, status;
  std::vector<std::string> overrides, sbatch;
  std::int64_t jobs = 0, max_runs = 0;
  bool slurm = false, dry_run = false;
  Output output;
};

// Shows what to know of the files of runs.
void show_remarks_on(const std::vector<SweepRun>& runs) {
  for (const SweepRun& run : runs)
    if (!run.remark.empty()) show_remarks({run.remark});
}

// Prints the state of the runs in a sweep directory, those that wait or are done as numbers only.
int show_status(const SweepArguments& arguments) {
  const std::filesystem::path directory = arguments.status;
  const auto [sweep, runs] = open_sweep(directory);
  show_remarks_on(runs);
  const std::vector<std::string> labels = setting_labels(sweep);
  Json counts = Json::object(), states = Json::array();
  std::string lines;
  for (const SweepRun& run : runs) {
    const std::string status(name(run.status));
    counts[status] = counts.value(status, 0) + 1;
    const std::int64_t steps = RunDirectory(run_path(directory, run)).last_step();
    const std::string holder =
        run.status == RunStatus::running ? run_queue().holder(run_path(directory, run)) : "";
    states.push_back({{"setting", labels[run.setting]},
                      {"seed", run.config.train.seed},
                      {"directory", run_path(directory, run).string()},
                      {"status", status},
                      {"steps", steps},
                      {"process", holder.empty() ? Json() : Json(holder)},
                      {"error", run.error.empty() ? Json() : Json(run.error)}});
    if (run.status == RunStatus::waiting || run.status == RunStatus::done) continue;
    lines +=
        fmt::format("{} seed {}: {}, step {}{}{}{}{}\n", labels[run.setting], run.config.train.seed, status,
                    steps, holder.empty() ? "" : ", ", holder, run.error.empty() ? "" : ": ", run.error);
  }
  const std::string queued = run_queue().submitted(directory);
  if (arguments.output.prints_text()) {
    std::vector<std::string> parts;
    for (const auto& [status, count] : counts.items())
      parts.push_back(fmt::format("{} {}", count.get<int>(), status));
    print_out("{}: {}: {}\n{}", directory.string(), counted(std::ssize(runs), "run"), fmt::join(parts, ", "),
              lines);
    if (!queued.empty()) print_out("Slurm: {}\n", queued);
  }
  arguments.output.write({{"counts", counts}, {"slurm", queued}, {"runs", states}});
  return kDone;
}

Sweep load(const SweepArguments& arguments) {
  Sweep sweep = load_sweep(arguments.file, arguments.overrides);
  for (const SweepSetting& setting : sweep.settings) require_no_outputs(setting.config);
  return sweep;
}

// Submits the missing runs to Slurm, or prints what would be submitted.
int submit(const SweepArguments& arguments) {
  const Sweep sweep = load(arguments);
  SweepOptions options{.directory = arguments.directory};
  if (options.directory.empty()) options.directory = sweep_directory(sweep, plan_runs(sweep));
  SubmitOptions submit{.task = {std::filesystem::read_symlink("/proc/self/exe").string(), "sweep"},
                       .options = arguments.sbatch,
                       .dry_run = arguments.dry_run};
  submit.task.push_back(arguments.file);
  submit.task.insert(submit.task.end(), arguments.overrides.begin(), arguments.overrides.end());
  submit.task.push_back("--out=" + options.directory.string());
  if (arguments.jobs > 0) submit.task.push_back(fmt::format("--jobs={}", arguments.jobs));
  const Submission submission = run_queue().submit(sweep, options, submit);
  Json jobs = Json::array();
  for (const Submission::Array& array : submission.arrays) {
    jobs.push_back({{"id", array.id}, {"tasks", array.tasks}, {"runs_per_task", array.runs_per_task}});
    if (!arguments.output.prints_text()) continue;
    if (arguments.dry_run)
      print_out("# {}\n", array.command);
    else
      print_out("Slurm job {}: {}\n", array.id, counted(array.tasks, "task"));
  }
  if (arguments.output.prints_text()) {
    if (arguments.dry_run) print_out("{}", submission.script);
    if (submission.arrays.empty()) print_out("no run is missing\n");
    if (!arguments.dry_run) print_out("sweep {}\n", submission.directory.string());
  }
  arguments.output.write({{"directory", submission.directory.string()}, {"jobs", jobs}});
  return kDone;
}

// Trains runs as one of several processes of a launcher, of which rank 0 reports. The others succeed whatever
// comes of the runs, since mpirun would end all ranks otherwise.
int help_rank_0(const SweepArguments& arguments, const SweepOptions& options) {
  try {
    const Sweep sweep = load_sweep(arguments.file, arguments.overrides);
    return run_sweep(sweep, options).interrupted ? kInterrupted : kDone;
  } catch (const ConfigError&) {
    return kDone;  // rank 0 reports it
  }
}

int run(const SweepArguments& arguments) {
  if (!arguments.status.empty()) return show_status(arguments);
  require<ConfigError>(!arguments.file.empty(),
                       "missing SWEEP: give a sweep file, or a sweep directory with --status");
  require<ConfigError>(arguments.slurm || arguments.sbatch.empty(),
                       "{}: options after -- are for sbatch; add --slurm before them",
                       fmt::join(arguments.sbatch, " "));
  if (arguments.slurm) return submit(arguments);
  const Rank rank = launcher_rank();
  SweepOptions options{.directory = arguments.directory, .jobs = arguments.jobs};
  if (options.jobs == 0 && rank.size > 1) options.jobs = 1;
  options.max_runs = arguments.max_runs;
  options.repeat_failures = rank.rank == 0 && arguments.max_runs == 0;
  if (rank.rank > 0) return help_rank_0(arguments, options);
  const ProgressMeter meter(arguments.output.quiet);
  const Sweep sweep = load(arguments);
  SweepProgress progress(sweep, arguments.output.quiet);
  options.observer = &progress;
  const SweepResult result = run_sweep(sweep, options);
  show_remarks_on(result.runs);
  if (!result.submitted.empty())
    print_err("thimble: {}: trained by Slurm ({}), so no run was started here\n", result.directory.string(),
              result.submitted);
  if (arguments.output.prints_text() && options.max_runs == 0)
    print_out("{}sweep {}\n", sweep_table(sweep, result.runs, line_width(1)), result.directory.string());
  if (!arguments.html.empty())
    write_result(arguments.html, compare_page(compare({result.directory.string()})));
  arguments.output.write(to_json(sweep, result.runs, result.directory));
  if (result.interrupted) {
    print_err("thimble: interrupted; progress saved; resume with the same command and --out {}\n",
              shell_path(result.directory));
    return kInterrupted;
  }
  if (options.max_runs > 0) return progress.all_done() ? kDone : kCheckFailed;
  return std::ranges::all_of(result.runs, is_done) ? kDone : kCheckFailed;
}

}  // namespace

void add_sweep(Command& program) {
  Command& command = program.add_command("sweep", "Train a grid of settings and seeds in parallel");
  auto arguments = std::make_shared<SweepArguments>();
  command.add_option("SWEEP", arguments->file, "Sweep file (YAML)").value_name("", Value::config);
  command.add_option("OVERRIDES", arguments->overrides, "Config overrides, such as train.steps=300")
      .value_name("key=value", Value::key);
  command
      .add_option("--out", arguments->directory,
                  "Directory of the runs, resumed if it exists (default: one under runs/)")
      .value_name("DIR", Value::new_sweep);
  command
      .add_option("--jobs", arguments->jobs,
                  "Parallel runs (0 = one per core, or one per MPI rank); never changes the result")
      .between(0, 4096);
  command
      .add_option("--max-runs", arguments->max_runs,
                  "Train at most N runs, none that has failed before (0 = all)")
      .between(0, kMaxSweepRuns);
  command.add_option("--html", arguments->html, "Write the comparison of the settings as an HTML page")
      .writable();
  Option& slurm = command.add_flag(
      "--slurm", arguments->slurm,
      "Submit the missing runs to Slurm as a job array; words after -- are options of sbatch, such as -- --time=2:00:00");
  command.add_flag("--dry-run", arguments->dry_run, "Print the script of the job array instead").needs(slurm);
  command.add_option("--status", arguments->status, "Show the state of the runs in DIR, without SWEEP")
      .value_name("DIR", Value::directory);
  command.add_rest(arguments->sbatch);
  arguments->output.add_to(command);
  command.action([arguments] { return run(*arguments); });
}

}  // namespace thimble::cli
