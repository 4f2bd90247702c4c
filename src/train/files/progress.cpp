#include "train/files/progress.h"

#include <algorithm>
#include <atomic>
#include <exception>

namespace thimble {

namespace {

std::atomic<ProgressObserver*> current_observer{nullptr};
std::atomic<bool> is_reporting{false};
thread_local char interrupted[64];  // an array, as an object with a destructor takes memory

}  // namespace

ProgressObserver* set_progress_observer(ProgressObserver* observer) {
  return current_observer.exchange(observer);
}

std::string_view interrupted_work() { return interrupted; }

ProgressCounter::ProgressCounter(std::string_view work, double total)
    : observer_(current_observer.load()),
      work_(work),
      total_(total),
      exceptions_(std::uncaught_exceptions()) {
  interrupted[0] = '\0';
  if (observer_ == nullptr) return;
  if (is_reporting.exchange(true))
    observer_ = nullptr;
  else
    observer_->on_progress(work_, 0);
}

ProgressCounter::ProgressCounter(std::string_view work)
    : observer_(nullptr), work_(work), total_(0), exceptions_(std::uncaught_exceptions()) {}

ProgressCounter::~ProgressCounter() {
  if (std::uncaught_exceptions() > exceptions_ && interrupted[0] == '\0')
    interrupted[work_.copy(interrupted, sizeof interrupted - 1)] = '\0';
  if (observer_ == nullptr) return;
  observer_->on_end();
  is_reporting.store(false);
}

void ProgressCounter::advance(double amount) {
  if (observer_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  done_ += amount;
  observer_->on_progress(work_, total_ > 0 ? std::min(1.0, done_ / total_) : 1);
}

}  // namespace thimble
