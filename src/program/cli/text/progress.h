// Progress of training.
#pragma once

#include <chrono>

#include "program/cli/cli.h"
#include "thimble/train/observer.h"

namespace thimble::cli {

// Shows training steps: on a terminal a status line, elsewhere a line for every twentieth of the run, every minute, and as
// soon as the rate says something. Stops training after a signal, quiet or not.
class Progress : public TrainObserver {
 public:
  explicit Progress(bool quiet) : quiet_(quiet) {}

  void on_start(const OpenConfig& config, const TrainResult& result) override;
  void on_step(const StepReport& report) override;
  void on_validation(std::int64_t step, const EvalResult& report) override;
  void on_samples(std::int64_t step, const std::vector<std::string>& texts) override;
  void on_damaged(const std::string& reason) override;
  void on_remark(const std::string& remark) override;
  void on_change(const std::string& difference) override;
  bool wants_stop() override { return stop_requested(); }

 private:
  using Clock = std::chrono::steady_clock;
  const bool quiet_;
  const bool terminal_ = is_terminal(2);
  std::int64_t first_ = 0, steps_ = 0, batch_ = 0;
  bool has_rate_ = false;
  Clock::time_point start_, last_;
};

}  // namespace thimble::cli
