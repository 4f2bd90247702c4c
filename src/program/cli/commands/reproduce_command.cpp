#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "program/cli/cli.h"
#include "program/cli/find_config.h"
#include "program/cli/text/progress_meter.h"
#include "program/cli/text/reproduce_table.h"
#include "program/reproduce/markdown.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "train/files/text/format.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFooter =
    "PASS: every condition holds on every seed. FAIL: some condition holds on no seed. NOT SHOWN: neither, or a value could not be measured.\n"
    "Exit status: 0 all goldens and controls passed, whatever the verdict on claims; 1 one of them did not, or a value could not be measured; 130 interrupted.\n";

// Prints a line for each finished run and each value; quiet: for each failed run.
class ReproduceProgress : public ReproduceObserver {
 public:
  ReproduceProgress(bool quiet, const Experiment& experiment) : quiet_(quiet), experiment_(experiment) {}

  void on_start(const std::vector<SweepRun>& runs, const fs::path&, std::int64_t jobs) override {
    if (quiet_) return;
    print_err("{}: {} runs, {} already finished, {} in parallel\n", experiment_.name, runs.size(),
              finished(runs), jobs);
  }

  void on_finished(const std::vector<SweepRun>& runs, const SweepRun& run, double seconds) override {
    const bool failed = run.status == RunStatus::failed;
    if (quiet_ && !failed) return;
    print_err("{}: {}/{}  {} seed {}{}  {:.1f} s\n", experiment_.name, finished(runs), runs.size(),
              experiment_.runs[run.setting].name, run.config.train.seed, failed ? ": " + run.error : "",
              seconds);
  }

  void on_interrupt(std::size_t running) override {
    print_err("interrupted: waiting for {} to finish a step; interrupt again to stop at once\n",
              counted(static_cast<std::int64_t>(running), "run"));
  }

  void on_value(const ExperimentValue& value, const std::vector<double>& seeds) override {
    if (quiet_) return;
    std::string line;
    for (const double x : seeds) line += ' ' + format_number(x);
    print_err("{}: {}:{}\n", experiment_.name, value.name, line);
  }

  bool wants_stop() override { return stop_requested(); }

 private:
  const bool quiet_;
  const Experiment& experiment_;
};

// A temporary directory under runs/reproduce.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::error_code failed;
    fs::create_directories("runs/reproduce", failed);
    require<FileError>(!failed && ::mkdtemp(path_.data()) != nullptr,
                       "runs/reproduce: cannot be written; choose a directory with --out");
  }
  ~ScratchDirectory() {
    try {
      fs::remove_all(path_);
    } catch (const std::exception&) {
      // A destructor must not throw: files that cannot be removed stay.
    }
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "runs/reproduce/XXXXXX";
};

struct ReproduceArguments {
  std::vector<std::string> names;
  std::string folder, directory, markdown, data;
  bool quick = false, list = false;
  std::int64_t jobs = 0;
  Output output;
};

// Returns the given folder of experiments, or the bundled one.
fs::path find_folder(const std::string& given) {
  std::vector<std::string> searched;
  for (const fs::path& configs : config_folders()) {
    fs::path folder = given.empty() ? configs / "reproduce" : fs::path(given);
    if (fs::is_directory(folder)) return folder;
    searched.push_back(folder.string());
    if (!given.empty()) break;
  }
  throw ConfigError(fmt::format("{}: not found; pass --experiments DIR", fmt::join(searched, ", ")));
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

// Returns the experiments that are named, or all; without --data, `left_out` gets those of all that need a file.
std::vector<Experiment> load(const ReproduceArguments& arguments, std::vector<Experiment>& left_out) {
  const fs::path folder = find_folder(arguments.folder);
  const std::vector<std::string> all = names_in(folder);
  for (const std::string& name : arguments.names) {
    if (std::ranges::find(all, name) != all.end()) continue;
    throw ConfigError(fmt::format("there is no experiment {}{}; thimble reproduce --list shows all", name,
                                  did_you_mean(name, all)));
  }
  std::vector<Experiment> experiments;
  for (const std::string& name : arguments.names.empty() ? all : arguments.names) {
    Experiment experiment = load_experiment((folder / (name + ".yaml")).string(), arguments.data);
    require_no_outputs(std::vector{experiment.file});
    for (const ExperimentRun& run : experiment.runs) require_no_outputs(run.setting.config);
    if (!experiment.quick && arguments.quick) continue;
    const bool lacks_data = !experiment.data.empty() && arguments.data.empty() && !arguments.list;
    require<ConfigError>(!lacks_data || arguments.names.empty(), "{} requires --data FILE: {}", name,
                         experiment.data);
    (lacks_data ? left_out : experiments).push_back(std::move(experiment));
  }
  const auto reads = [](const Experiment& experiment) { return !experiment.data.empty(); };
  require<ConfigError>(
      arguments.data.empty() || (experiments.size() == 1 && reads(experiments[0])),
      "--data is for one experiment that requires a file; name it (thimble reproduce --list says which)");
  return experiments;
}

int run(ReproduceArguments arguments) {
  const bool only_lists = arguments.names.empty() && !arguments.quick;
  if (arguments.names == std::vector<std::string>{"all"}) arguments.names.clear();
  arguments.list |= only_lists;
  const ProgressMeter meter(arguments.output.quiet);
  std::vector<Experiment> left_out;
  const std::vector<Experiment> experiments = load(arguments, left_out);
  if (arguments.list) {
    print_out("{}", experiments_list(experiments, line_width(1)));
    if (only_lists)
      print_err("thimble reproduce NAME runs one of them, thimble reproduce all runs every one\n");
    return kDone;
  }
  std::optional<ScratchDirectory> scratch;
  if (arguments.directory.empty()) scratch.emplace();
  const std::string directory = scratch ? scratch->path() : arguments.directory;

  catch_signals();
  std::vector<ExperimentResult> results;
  Json json{{"experiments", Json::array()}, {"skipped", Json::array()}};
  for (const Experiment& experiment : left_out)
    json["skipped"].push_back({{"name", experiment.name}, {"needs", experiment.data}});
  for (const Experiment& experiment : experiments) {
    ReproduceProgress progress(arguments.output.quiet, experiment);
    results.push_back(
        run_experiment(experiment, {.directory = directory, .jobs = arguments.jobs, .observer = &progress}));
    if (results.back().interrupted) {
      print_err("thimble: interrupted{}\n",
                scratch ? ""
                        : fmt::format("; progress saved; resume with the same command and --out {}",
                                      shell_path(directory)));
      return kInterrupted;
    }
    json["experiments"].push_back(to_json(results.back()));
  }
  if (arguments.output.prints_text()) print_out("{}", experiments_table(results, line_width(1)));
  for (const Experiment& experiment : left_out)
    if (arguments.output.prints_text())
      print_paragraph("{}: skipped, as it requires --data FILE: {}", experiment.name, experiment.data);
  if (!arguments.markdown.empty()) write_result(arguments.markdown, to_markdown(results));
  arguments.output.write(json);
  return std::ranges::all_of(results, &ExperimentResult::succeeded) ? kDone : kCheckFailed;
}

}  // namespace

void add_reproduce(Command& program) {
  Command& command =
      program.add_command("reproduce", "Reproduce published results and test claims, with verdicts");
  auto arguments = std::make_shared<ReproduceArguments>();
  command.add_option("NAME", arguments->names, "Experiments, or all (default: list them)");
  command.add_flag("--list", arguments->list, "List the experiments and exit");
  command.add_flag("--quick", arguments->quick, "Skip experiments that take more than 5 minutes on 2 cores");
  command
      .add_option("--experiments", arguments->folder,
                  "Directory of experiment files (default: the bundled ones)")
      .value_name("DIR", Value::directory);
  command.add_option("--data", arguments->data, "The file that the experiment requires, as --list says")
      .value_name("FILE", Value::file);
  command.add_option("--out", arguments->directory, "Keep the runs in DIR, and reuse finished ones")
      .value_name("DIR", Value::directory);
  command.add_option("--jobs", arguments->jobs, "Parallel runs (0 = one per core); never changes the result")
      .between(0, 4096);
  command.add_option("--markdown", arguments->markdown, "Write the results as Markdown").writable();
  command.ending(kFooter);
  arguments->output.add_to(command);
  command.action([arguments] { return run(*arguments); });
}

}  // namespace thimble::cli
