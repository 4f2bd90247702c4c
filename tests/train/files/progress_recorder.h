// A recorder of the progress that is reported during its lifetime.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/files/progress.h"

namespace thimble {

class ProgressRecorder : public ProgressObserver {
 public:
  ProgressRecorder() : before_(set_progress_observer(this)) {}
  ~ProgressRecorder() override { set_progress_observer(before_); }
  ProgressRecorder(const ProgressRecorder&) = delete;
  ProgressRecorder& operator=(const ProgressRecorder&) = delete;

  void on_progress(std::string_view work, double share) override {
    works.emplace_back(work);
    shares.push_back(share);
  }
  void on_end() override { ++ends; }

  std::vector<std::string> works;
  std::vector<double> shares;
  int ends = 0;

 private:
  ProgressObserver* before_;
};

}  // namespace thimble
