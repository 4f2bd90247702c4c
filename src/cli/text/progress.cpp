#include "cli/text/progress.h"

#include <algorithm>

#include "thimble/core/format.h"
#include "thimble/core/width.h"

namespace thimble::cli {

void Progress::on_start(const Config& config, const TrainResult& result) {
  first_ = result.steps;
  steps_ = config.train.steps;
  batch_ = config.train.batch;
  start_ = last_ = Clock::now();
  if (quiet_) return;
  const auto& m = config.model;
  const std::string parts = m.kind == ModelKind::recurrent
                                ? "recurrent"
                                : fmt::format("{}, {}", counted(m.layers, "layer"), counted(m.heads, "head"));
  print_err("{}: {} parameters, {}, d_model {}; {} steps of {} on {}\n", config.task.name, result.parameters,
            parts, m.d_model, steps_, batch_, counted(result.threads, "thread"));
  if (first_ > 0) print_err("resuming from step {}\n", first_);
  const auto shared = [](const char* split, std::int64_t n) {
    if (n > 0)
      print_err("{} also occur{} in the training split: the task has too few distinct inputs\n",
                counted(n, fmt::format("{} sequence", split)), n == 1 ? "s" : "");
  };
  shared("validation", result.shared_validation);
  shared("test", result.shared_test);
}

namespace {

// Joins parts with two spaces, without the least important ones if they do not fit. `order` has the indices
// of the parts that may be left out, the least important first.
std::string fitted(std::vector<std::string> parts, const std::vector<std::size_t>& order, std::size_t width) {
  const auto join = [&] {
    std::string line;
    for (const std::string& part : parts)
      if (!part.empty()) line += (line.empty() ? "" : "  ") + part;
    return line;
  };
  for (const std::size_t part : order) {
    if (display_width(join()) <= width) break;
    parts[part].clear();
  }
  return join();
}

}  // namespace

void Progress::on_step(const StepReport& report) {
  if (quiet_) return;
  const auto now = Clock::now();
  const bool due = terminal_ ? now - last_ >= std::chrono::milliseconds(100) || report.step == steps_
                             : report.step % std::max<std::int64_t>(1, steps_ / 20) == 0 ||
                                   report.step == 1 || now - last_ >= std::chrono::minutes(1);
  if (!due) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double per_step = seconds / static_cast<double>(report.step - first_);
  const std::string line = fitted(
      {fmt::format("step {}/{}", report.step, steps_), fmt::format("loss {:.4f}", report.loss),
       fmt::format("tokens {:6.2f} %", 100 * report.accuracy), fmt::format("lr {:.2e}", report.learning_rate),
       fmt::format("{:.0f} seq/s", static_cast<double>(batch_) / per_step),
       format_duration(per_step * static_cast<double>(steps_ - report.step)) + " left"},
      {3, 4, 2, 5}, line_width(2) - 1);
  if (terminal_ && report.step < steps_)
    write_status(line);
  else
    write_err(line + '\n');
}

void Progress::on_validation(std::int64_t step, const EvalResult& report) {
  if (quiet_) return;
  print_err("step {:>6}  validation  loss {:.6f}  tokens {:6.2f} %\n", step, report.loss,
            100 * report.accuracy);
}

void Progress::on_damaged(const std::string& reason) {
  print_err("thimble: {}; set aside, falling back to the checkpoint before it\n", reason);
}

void Progress::on_change(const std::string& difference) {
  if (!quiet_) print_err("{}\n", difference);
}

}  // namespace thimble::cli
