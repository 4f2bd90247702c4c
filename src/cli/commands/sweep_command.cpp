#include <algorithm>
#include <chrono>

#include "cli/cli.h"
#include "cli/text/progress_meter.h"
#include "cli/text/sweep_table.h"
#include "thimble/compare/page.h"
#include "thimble/core/file.h"
#include "thimble/core/format.h"
#include "thimble/core/json.h"
#include "thimble/sweep/run_sweep.h"

namespace thimble::cli {

namespace {

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
};

struct SweepArguments {
  std::string file, directory, html;
  std::vector<std::string> overrides;
  std::int64_t jobs = 0;
  Output output;
};

int run(const SweepArguments& arguments) {
  const ProgressMeter meter(arguments.output.quiet);
  const Sweep sweep = load_sweep(arguments.file, arguments.overrides);
  SweepProgress progress(sweep, arguments.output.quiet);
  const SweepResult result =
      run_sweep(sweep, {.directory = arguments.directory, .jobs = arguments.jobs, .observer = &progress});
  if (arguments.output.prints_text())
    print_out("{}sweep {}\n", sweep_table(sweep, result.runs, line_width(1)), result.directory.string());
  if (!arguments.html.empty()) write_file(arguments.html, compare_page(compare({result.directory.string()})));
  arguments.output.write(to_json(sweep, result.runs, result.directory));
  if (result.interrupted) {
    print_err("thimble: interrupted; progress saved; resume with the same command and --out {}\n",
              result.directory.string());
    return kInterrupted;
  }
  const auto is_done = [](const SweepRun& r) { return r.status == RunStatus::done; };
  return std::ranges::all_of(result.runs, is_done) ? kDone : kCheckFailed;
}

}  // namespace

void add_sweep(Command& program) {
  Command& command = program.add_command("sweep", "Train a grid of settings and seeds in parallel");
  auto arguments = std::make_shared<SweepArguments>();
  command.add_option("SWEEP", arguments->file, "Sweep file (YAML)").required().value_name("", Value::config);
  command.add_option("OVERRIDES", arguments->overrides, "Config overrides, such as train.steps=300")
      .value_name("key=value", Value::key);
  command
      .add_option("--out", arguments->directory,
                  "Directory of the runs, resumed if it exists (default: one under runs/)")
      .value_name("DIR", Value::directory);
  command.add_option("--jobs", arguments->jobs, "Parallel runs (0 = one per core); never changes the result")
      .between(0, 4096)
      .value_name("N");
  command.add_option("--html", arguments->html, "Write the comparison of the settings as an HTML page")
      .writable()
      .value_name("FILE", Value::file);
  arguments->output.add_to(command);
  command.action([arguments] { return run(*arguments); });
}

}  // namespace thimble::cli
