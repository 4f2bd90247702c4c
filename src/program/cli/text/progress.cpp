#include "program/cli/text/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "thimble/train/train.h"
#include "train/files/text/format.h"
#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

constexpr double kEnoughSeconds = 0.5;  // of training, to tell its rate

// Prints how much of a data file training reads, and what an evaluation costs.
void print_reading(const OpenConfig& config) {
  const Source* rows = config.source.get();
  if (rows == nullptr) return;
  const DataConfig sizes = split_sizes(config);
  const std::int64_t epoch = sizes.train / config.train.batch, rest = sizes.train % config.train.batch;
  const double reads = static_cast<double>(config.train.steps) * static_cast<double>(config.train.batch) /
                       static_cast<double>(sizes.train);
  const std::int64_t all = rows->rows(Split::train), held_out = rows->rows(Split::validation);
  const std::string steps_of =
      fmt::format("{} steps of {}", grouped(config.train.steps), grouped(config.train.batch));
  if (rows->starts() > 0)
    print_err("trains on windows at random places, {} possible; {} read each token {:.2g} times\n",
              grouped(rows->starts()), steps_of, reads);
  else
    print_err("trains on {} {} {}s; {} read {}\n", sizes.train < all ? grouped(sizes.train) + " of" : "all",
              grouped(all), rows->row_name(), steps_of,
              reads < 1 ? fmt::format("{:.0f} % of them, once; an epoch, all{} of them, is train.steps={}",
                                      100 * reads, rest > 0 ? fmt::format(" but {}", rest) : "", epoch)
                        : fmt::format("each {:.1f} times", reads));
  // A training step is a forward pass and a backward one of twice its work.
  const double steps = static_cast<double>(sizes.validation) / (3 * static_cast<double>(config.train.batch));
  print_err("an evaluation reads {} {} validation {}s, the work of about {} training steps{}\n",
            sizes.validation < held_out ? grouped(sizes.validation) + " of" : "all", grouped(held_out),
            rows->row_name(), format_number(std::max(1.0, std::round(steps))),
            steps > 10 ? "; data.validation=N takes a random sample of N" : "");
}

}  // namespace

void Progress::on_start(const OpenConfig& config, const TrainResult& result) {
  first_ = result.steps;
  steps_ = config.train.steps;
  batch_ = config.train.batch;
  start_ = last_ = Clock::now();
  if (quiet_) return;
  const auto& m = config.model;
  const std::string parts = m.kind == ModelKind::recurrent
                                ? "recurrent"
                                : fmt::format("{}, {}", counted(m.layers, "layer"), counted(m.heads, "head"));
  const std::string head =
      fmt::format("{}: {} parameters, {}, d_model {}; {} steps of {} on {}", config.task.name,
                  result.parameters, parts, m.d_model, steps_, batch_, counted(result.threads, "thread"));
  print_err("{}", wrapped(head, line_width(2)));
  print_reading(config);
  if (first_ > 0) print_err("resuming from step {}\n", first_);
  for (const std::string& line : shared_remarks(config, result)) print_err("{}\n", line);
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
  const double seconds = std::chrono::duration<double>(now - start_).count();
  // Rates of the first steps say nothing of the others.
  const bool had_rate = std::exchange(has_rate_, seconds >= kEnoughSeconds || report.step == steps_);
  const bool due = terminal_
                       ? now - last_ >= std::chrono::milliseconds(100) || report.step == steps_
                       : report.step % std::max<std::int64_t>(1, steps_ / 20) == 0 || report.step == 1 ||
                             has_rate_ != had_rate || now - last_ >= std::chrono::minutes(1);
  if (!due) return;
  last_ = now;
  const double per_step = seconds / static_cast<double>(report.step - first_);
  const std::string line = fitted(
      {fmt::format("step {}/{}", report.step, steps_), fmt::format("loss {:.4f}", report.loss),
       fmt::format("tokens {:6.2f} %", 100 * report.accuracy), fmt::format("lr {:.2e}", report.learning_rate),
       has_rate_ ? fmt::format("{:.0f} seq/s", static_cast<double>(batch_) / per_step) : "",
       has_rate_ ? format_duration(per_step * static_cast<double>(steps_ - report.step)) + " left" : ""},
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

void Progress::on_samples(std::int64_t step, const std::vector<std::string>& texts) {
  if (quiet_) return;
  print_err("step {:>6}  samples\n", step);
  for (const std::string& text : texts) {
    std::string lines = "  ";
    for (const char c : text) lines += c == '\n' ? "\n  " : std::string(1, c);
    print_err("{}\n", lines);
  }
}

void Progress::on_damaged(const std::string& reason) {
  print_err("thimble: {}; set aside, falling back to the checkpoint before it\n", reason);
}

void Progress::on_remark(const std::string& remark) { print_err("thimble: {}\n", remark); }

void Progress::on_change(const std::string& difference) {
  if (!quiet_) print_err("{}\n", difference);
}

}  // namespace thimble::cli
