#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "thimble/core/error.h"

namespace thimble::cli {

namespace {

std::string duration(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

// On a terminal one line that is written over a few times a second; elsewhere a line at every twentieth of
// the run.
class Progress : public TrainObserver {
 public:
  void on_start(const Config& config, const TrainResult& result) override {
    steps_ = config.train.steps;
    batch_ = config.train.batch;
    const auto& m = config.model;
    fmt::print(
        stderr, "{}: {} parameters, {} layer{}, {} head{}, d_model {}; {} steps of {} on {} thread{}\n",
        config.task.name, result.parameters, m.layers, m.layers == 1 ? "" : "s", m.heads,
        m.heads == 1 ? "" : "s", m.d_model, steps_, batch_, result.threads, result.threads == 1 ? "" : "s");
    start_ = last_ = Clock::now();
  }

  void on_step(const StepReport& report) override {
    const auto now = Clock::now();
    const bool due = terminal_
                         ? now - last_ >= std::chrono::milliseconds(100) || report.step == steps_
                         : report.step % std::max<std::int64_t>(1, steps_ / 20) == 0 || report.step == 1;
    if (!due) return;
    last_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double per_step = seconds / static_cast<double>(report.step);
    fmt::print(stderr, "{}step {}/{}  loss {:.4f}  acc {:6.2f} %  lr {:.2e}  {:.0f} seq/s  {} left{}",
               terminal_ ? "\r\033[K" : "", report.step, steps_, report.loss, 100 * report.accuracy,
               report.learning_rate, static_cast<double>(batch_) / per_step,
               duration(per_step * static_cast<double>(steps_ - report.step)), terminal_ ? "" : "\n");
    if (terminal_ && report.step == steps_) fmt::print(stderr, "\n");
    std::fflush(stderr);
  }

  void on_validation(std::int64_t step, const SplitReport& report) override {
    if (terminal_ && step != steps_) fmt::print(stderr, "\r\033[K");
    fmt::print(stderr, "step {:>6}  validation  loss {:.6f}  tokens {:6.2f} %\n", step, report.loss,
               100 * report.accuracy);
  }

 private:
  using Clock = std::chrono::steady_clock;
  const bool terminal_ = is_terminal(STDERR_FILENO);
  std::int64_t steps_ = 0, batch_ = 0;
  Clock::time_point start_, last_;
};

struct Arguments {
  ConfigArguments config;
  Output output;
  std::string directory;
};

int run(const Arguments& arguments) {
  const Config config = arguments.config.load();
  std::string directory = arguments.directory;
  if (directory.empty()) directory = free_run_directory(arguments.config.file, config).string();
  Progress progress;
  const TrainResult result =
      train(config, {.directory = directory, .observer = arguments.output.quiet ? nullptr : &progress});
  if (arguments.output.talks()) {
    if (result.validation) fmt::print("{}\n", describe("validation", *result.validation));
    if (result.test) fmt::print("{}\n", describe("test", *result.test));
    fmt::print("weights     {}   {} steps in {:.1f} s\nrun         {}\n", result.weights_hash, result.steps,
               result.seconds, result.directory);
  }
  arguments.output.write(to_json(result));
  return kDone;
}

}  // namespace

void add_train(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("train", "Train the model that a config describes");
  auto arguments = std::make_shared<Arguments>();
  arguments->config.add_to(*command);
  command->add_option("--out", arguments->directory, "Run directory; default: a new one under runs/")
      ->type_name("DIR");
  command->add_option("--threads", arguments->config.threads, "Threads, 0: every core; same result")
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
  arguments->output.add_to(*command);
  command->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace thimble::cli
