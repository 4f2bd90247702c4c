// Progress of long work other than training.
#pragma once

#include <chrono>

#include "train/files/progress.h"

namespace thimble::cli {

// Shows the share done and the time left of work that takes longer than 2 seconds on standard error: on a
// terminal as a status line that is removed at the end, elsewhere as lines after 2, 4, 8, ... seconds, and
// then every minute.
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
