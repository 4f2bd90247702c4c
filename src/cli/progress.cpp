#include "cli/progress.h"

#include <algorithm>

namespace thimble::cli {

namespace {

const char* plural(std::int64_t n) { return n == 1 ? "" : "s"; }

}  // namespace

void Progress::on_start(const Config& config, const TrainResult& result) {
  first_ = result.steps;
  steps_ = config.train.steps;
  batch_ = config.train.batch;
  start_ = last_ = Clock::now();
  if (quiet_) return;
  const auto& m = config.model;
  const std::string parts =
      m.kind == ModelKind::recurrent
          ? "recurrent"
          : fmt::format("{} layer{}, {} head{}", m.layers, plural(m.layers), m.heads, plural(m.heads));
  print_err("{}: {} parameters, {}, d_model {}; {} steps of {} on {} thread{}\n", config.task.name,
            result.parameters, parts, m.d_model, steps_, batch_, result.threads, plural(result.threads));
  if (first_ > 0) print_err("going on after step {}\n", first_);
  const auto shared = [](const char* split, std::int64_t n) {
    if (n > 0)
      print_err("{} {} sequence{} also occur{} in training: the task has too few\n", n, split, plural(n),
                n == 1 ? "s" : "");
  };
  shared("validation", result.shared_validation);
  shared("test", result.shared_test);
}

void Progress::on_step(const StepReport& report) {
  if (quiet_) return;
  const auto now = Clock::now();
  const bool due = terminal_ ? now - last_ >= std::chrono::milliseconds(100) || report.step == steps_
                             : report.step % std::max<std::int64_t>(1, steps_ / 20) == 0 || report.step == 1;
  if (!due) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double per_step = seconds / static_cast<double>(report.step - first_);
  const std::string line = fmt::format(
      "step {}/{}  loss {:.4f}  acc {:6.2f} %  lr {:.2e}  {:.0f} seq/s  {} left", report.step, steps_,
      report.loss, 100 * report.accuracy, report.learning_rate, static_cast<double>(batch_) / per_step,
      duration(per_step * static_cast<double>(steps_ - report.step)));
  if (terminal_) write_status(line);
  if (!terminal_) write_err(line);
  if (!terminal_ || report.step == steps_) write_err("\n");
}

void Progress::on_validation(std::int64_t step, const SplitReport& report) {
  if (quiet_) return;
  if (terminal_ && step != steps_) write_status("");
  print_err("step {:>6}  validation  loss {:.6f}  tokens {:6.2f} %\n", step, report.loss,
            100 * report.accuracy);
}

void Progress::on_damaged(const std::string& reason) {
  print_err("thimble: {}; set aside, the checkpoint before it is tried\n", reason);
}

}  // namespace thimble::cli
