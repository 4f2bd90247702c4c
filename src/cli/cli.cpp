#include "cli/cli.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "thimble/core/error.h"

namespace thimble::cli {

void Output::add_to(Command& command) {
  command.add_option("--json", json, "Result as JSON, - for standard output").writable().value_name("FILE");
  command.add_flag("--quiet", quiet, "Print nothing but errors");
}

void Output::write(const nlohmann::ordered_json& result) const {
  if (json.empty()) return;
  const std::string text = result.dump(2) + "\n";
  if (json == "-") {
    fmt::print("{}", text);
  } else {
    write_file(json, text);
  }
}

void Source::add_to(Command& command) {
  command.add_option("RUN", run, "Run directory").value_name("");
  command.add_option("--checkpoint", checkpoint, "best, final or a step; default: the newest")
      .value_name("NAME");
  command.add_option("--config", config, "Config of a model made elsewhere, not RUN").value_name("FILE");
  command.add_option("--weights", weights, "Its weights, a safetensors file").value_name("FILE");
  command.add_option("OVERRIDES", overrides, "Changes to its config, as task.length=20")
      .value_name("key=value");
}

ModelSource Source::open() const {
  if (config.empty() && weights.empty()) {
    require<ConfigError>(!run.empty(), "which run? Give a run directory, or --config and --weights");
    return open_run(run, overrides, checkpoint);
  }
  require<ConfigError>(checkpoint.empty(), "--checkpoint is for run directories; --weights names the file");
  require<ConfigError>(!config.empty() && !weights.empty(),
                       "--config and --weights belong together: give both");
  std::vector<std::string> changes = overrides;
  if (!run.empty())
    changes.insert(changes.begin(), run);  // there is no run, so the first argument is a change
  return {load_config(config, changes), weights};
}

void ConfigArguments::add_to(Command& command, bool required) {
  Option& config = command.add_option("CONFIG", file, "Config file (YAML)").value_name("");
  if (required) config.required();
  command.add_option("OVERRIDES", overrides, "Changes to it, such as model.layers=3").value_name("key=value");
}

Config ConfigArguments::load() const {
  Config result = load_config(file, overrides);
  if (threads >= 0) result.train.threads = threads;
  return result;
}

std::string duration(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return is_terminal(STDOUT_FILENO) && !dumb && (no_colour == nullptr || *no_colour == '\0');
}

namespace {

volatile std::sig_atomic_t signals = 0;

extern "C" void on_signal(int) {
  if (signals > 0) ::_exit(kInterrupted);
  signals = 1;
}

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

bool stop_requested() { return signals > 0; }

bool warn_of_leak(const std::string& name, const SplitReport& report) {
  if (!report.leak) return false;
  fmt::print(stderr,
             "thimble: leak: the {} loss, {:.6f}, is below {:.6f}, the lowest that fresh sequences\n"
             "of this task allow (standard error {:.1g}): the model sees answers\n",
             name, report.loss, *report.leak, report.loss_error);
  return true;
}

std::string describe(const std::string& name, const SplitReport& report) {
  const double whole = report.written_accuracy.value_or(report.sequence_accuracy);
  return fmt::format("{:<11} loss {:.6f}   tokens {:6.2f} %   {} {:6.2f} % of {}", name, report.loss,
                     100 * report.accuracy, report.written_accuracy ? "written" : "sequences", 100 * whole,
                     report.sequences);
}

}  // namespace thimble::cli
