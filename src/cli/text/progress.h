// What people see of training while it goes on.
#pragma once

#include <chrono>

#include "cli/cli.h"

namespace thimble::cli {

// On a terminal one line that is written over a few times a second; elsewhere a line at every twentieth of
// the run, and after every minute. Signals that ask for an end are passed on, quiet or not.
class Progress : public TrainObserver {
 public:
  explicit Progress(bool quiet) : quiet_(quiet) {}

  void on_start(const Config& config, const TrainResult& result) override;
  void on_step(const StepReport& report) override;
  void on_validation(std::int64_t step, const EvalResult& report) override;
  void on_damaged(const std::string& reason) override;
  bool wants_stop() override { return stop_requested(); }

 private:
  using Clock = std::chrono::steady_clock;
  const bool quiet_;
  const bool terminal_ = is_terminal(2);
  std::int64_t first_ = 0, steps_ = 0, batch_ = 0;
  Clock::time_point start_, last_;
};

}  // namespace thimble::cli
