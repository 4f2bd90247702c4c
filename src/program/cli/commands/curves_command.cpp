#include <algorithm>
#include <chrono>
#include <thread>

#include "program/cli/cli.h"
#include "program/cli/text/curves.h"
#include "program/cli/text/progress_meter.h"
#include "thimble/engine/error.h"
#include "train/files/lock.h"
#include "train/files/text/text.h"
#include "train/runs/run_layout.h"

namespace thimble::cli {

namespace {

struct CurvesArguments {
  std::string run;
  bool follow = false;
  Output output;
};

int run(const CurvesArguments& arguments) {
  using Clock = std::chrono::steady_clock;
  const ProgressMeter meter(arguments.output.quiet);
  const RunDirectory run = arguments.run;
  run.require_run();
  const bool redraws = is_terminal(1);
  for (std::ptrdiff_t lines = 0;;) {  // lines of the drawing that is there
    const auto start = Clock::now();
    const bool is_last = !arguments.follow || FileLock::holder(run.path() / DirectoryLock::kFile).empty();
    const std::vector<std::filesystem::path> checkpoints = checkpoint_files(run.path());
    const Timeline timeline =
        read_timeline(run, checkpoints.empty() ? RunState() : header_state(checkpoints.front()));
    if (arguments.output.prints_text() && (is_last || redraws)) {
      const std::string text = curves_text(timeline.curves, !redraws || !has_utf8(), line_width(1));
      if (lines > 0) write_picture(fmt::format("\033[{}A\033[J", lines));
      lines = std::ranges::count(text, '\n');
      print_out("{}", text);
      flush_out();
    }
    if (is_last) {
      show_remarks(timeline.remarks);
      const bool has_ended = run.has_summary();
      require<CheckpointError>(
          !timeline.curves.empty(), "{}: metrics.jsonl has no steps to draw; {}: thimble train {}{}",
          run.name(), has_ended ? "training has ended, so begin a new run" : "train it",
          shell_path(has_ended ? run.config_path() : run.path()), has_ended ? "" : " --resume");
      arguments.output.write(to_json(timeline));
      return kDone;
    }
    std::this_thread::sleep_for(std::chrono::seconds(1) + 10 * (Clock::now() - start));
  }
}

}  // namespace

void add_curves(Command& program) {
  Command& command = program.add_command("curves", "Draw the loss and the accuracy of a run by step");
  auto arguments = std::make_shared<CurvesArguments>();
  command.add_option("RUN", arguments->run, "Run directory").required().value_name("", Value::run);
  command.add_flag("--follow", arguments->follow,
                   "While the run trains: on a terminal draw again each second, elsewhere draw at its end");
  arguments->output.add_to(command);
  command.action([arguments] { return run(*arguments); });
}

}  // namespace thimble::cli
