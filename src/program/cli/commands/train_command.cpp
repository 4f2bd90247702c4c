#include <filesystem>

#include "inspect/timeline/head_log.h"
#include "program/cli/text/progress.h"
#include "program/cli/text/progress_meter.h"
#include "thimble/engine/error.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/files/text/text.h"
#include "train/step/cost.h"

namespace thimble::cli {

namespace {

struct TrainArguments {
  ConfigArguments config;
  Output output;
  std::string directory;
  bool resume = false;
  std::int64_t stop_after = 0;
};

int report(const TrainResult& result, const Config& config, const TrainArguments& arguments) {
  const Output& output = arguments.output;
  output.write(to_json(result));
  if (result.stopped == Stopped::interrupted) {
    print_err("thimble: stopped after step {}; progress saved; resume with:\n  thimble train {} --resume\n",
              result.steps, shell_path(result.directory));
    return arguments.stop_after > 0 && result.steps >= arguments.stop_after ? kDone : kInterrupted;
  }
  if (output.prints_text()) {
    if (result.stopped == Stopped::at_target) print_out("target reached at step {}\n", result.steps);
    if (result.stopped == Stopped::out_of_patience)
      print_out("early stopping: no better validation loss since step {}\n", result.best_step);
    if (result.final)
      print_out("best step {}: validation loss {:.4f}; the result is its checkpoint\n", result.best_step,
                result.best_loss);
    if (result.validation) print_out("{}\n", describe("validation", *result.validation, config));
    if (result.test) print_out("{}\n", describe("test", *result.test, config));
    if (const auto& last = result.test ? result.test : result.validation)
      print_out("{}", describe_reference(*last, config));
    print_out("weights     {}   arithmetic: {}   {} steps in {:.1f} s\nrun         {}\n", result.weights_hash,
              result.arithmetic, result.steps, result.seconds, result.directory);
  }
  bool failed = result.target_missed;
  if (result.target_missed) print_err("thimble: train.target was not reached\n");
  if (result.validation) failed |= warn_of_leak("validation", *result.validation);
  if (result.test) failed |= warn_of_leak("test", *result.test);
  if (const auto& last = result.test ? result.test : result.validation; last && !output.quiet)
    warn_of_chance(result.test ? "test" : "validation", *last);
  return failed ? kCheckFailed : kDone;
}

int run(TrainArguments arguments) {
  Ranks& ranks = start_ranks("train", arguments.output, arguments.directory);
  const ProgressMeter meter(arguments.output.quiet);
  const std::filesystem::path source = arguments.config.file;
  const bool is_run = std::filesystem::is_directory(source);
  if (is_run) {
    require<ConfigError>(arguments.resume && arguments.directory.empty(),
                         "{}: is a directory, not a config; to resume a run, give --resume and no --out",
                         source.string());
    arguments.directory = source.string();
  }
  RunDirectory directory = arguments.directory;
  const OpenConfig config = is_run ? arguments.config.load(directory) : arguments.config.load();
  if (config.source != nullptr && !arguments.output.quiet)
    for (const std::string& remark : config.source->remarks(config.data.train))
      print_err("thimble: {}\n", remark);
  if (directory.empty())
    directory = arguments.resume ? run_directory(source, config) : unused_run_directory(source, config);
  require_fit(training_memory(config, ranks.size()));
  catch_signals();
  Progress progress(arguments.output.quiet);
  return report(train(config, {.directory = directory,
                               .resume = arguments.resume,
                               .observer = &progress,
                               .make_head_log = head_log,
                               .stop_after = arguments.stop_after,
                               .ranks = &ranks}),
                config, arguments);
}

}  // namespace

void add_train(Command& program) {
  Command& command = program.add_command("train", "Train a model from a config");
  auto arguments = std::make_shared<TrainArguments>();
  arguments->config.add_to(command);
  command.add_option("--out", arguments->directory, "Run directory (default: a new one under runs/)")
      .value_name("DIR", Value::new_run);
  command.add_flag("--resume", arguments->resume, "Resume the run; CONFIG may be its run directory");
  command
      .add_option("--stop-after", arguments->stop_after,
                  "Save and stop after this step, to be resumed (0 = train to the end)")
      .between(0, 1'000'000'000)
      .value_name("STEP");
  command
      .add_option("--threads", arguments->config.threads,
                  "Threads (0 = all cores, which MPI ranks share); never changes the result")
      .between(0, 4096);
  arguments->output.add_to(command);
  command.action([arguments] { return run(*arguments); });
}

}  // namespace thimble::cli
