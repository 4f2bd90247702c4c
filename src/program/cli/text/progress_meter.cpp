#include "program/cli/text/progress_meter.h"

#include <algorithm>

#include "program/cli/cli.h"
#include "train/files/text/format.h"

namespace thimble::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto kFirst = 2s, kMaxPause = 60s;
constexpr auto kRefresh = 100ms;

}  // namespace

ProgressMeter::ProgressMeter(bool quiet)
    : terminal_(is_terminal(2)), before_(set_progress_observer(quiet ? nullptr : this)) {}

ProgressMeter::~ProgressMeter() {
  ProgressMeter::on_end();
  set_progress_observer(before_);
}

void ProgressMeter::on_progress(std::string_view work, double share) {
  const auto now = Clock::now();
  if (share == 0) {
    start_ = now;
    due_ = now + kFirst;
  }
  if (now < due_ || share == 0) return;
  const Clock::duration elapsed = now - start_;
  due_ = now + (terminal_ ? Clock::duration(kRefresh) : std::min<Clock::duration>(elapsed, kMaxPause));
  shown_ = terminal_;
  const double seconds = std::chrono::duration<double>(elapsed).count();
  const std::string line =
      fmt::format("{}: {:.0f} %, {} left", work, 100 * share, format_duration(seconds * (1 - share) / share));
  terminal_ ? write_status(line) : print_err("{}\n", line);
}

void ProgressMeter::on_end() {
  if (shown_) write_status("");
  shown_ = false;
}

}  // namespace thimble::cli
