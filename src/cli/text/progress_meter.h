// What people see of long work other than training while it goes on.
#pragma once

#include <chrono>

#include "thimble/core/progress.h"

namespace thimble::cli {

// Shows work that takes longer than a moment on standard error, with the share done and the time left: on a
// terminal in one line that is written over and removed at the end; elsewhere a line after 2 seconds, 4, 8
// and so on, and every minute in the end.
class ProgressMeter : public ProgressObserver {
 public:
  explicit ProgressMeter(bool quiet);  // quiet: shows nothing
  ~ProgressMeter() override;
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  void on_progress(std::string_view work, double share) override;
  void on_end() override;

 private:
  using Clock = std::chrono::steady_clock;
  const bool terminal_;
  ProgressObserver* const before_;
  bool shown_ = false;
  Clock::time_point start_, due_;
};

}  // namespace thimble::cli
