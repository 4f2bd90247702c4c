// Progress of long work, reported to an observer.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace thimble {

// An interface that receives the progress of one piece of work after the other. Its functions are never
// called concurrently, and must not throw.
class ProgressObserver {
 public:
  virtual ~ProgressObserver() = default;
  // Receives the share of the work that is done: 0 at the start, at most 1, never less than before.
  virtual void on_progress(std::string_view work, double share) = 0;
  virtual void on_end() = 0;  // of the work, whether it is done or not
};

// Makes all work of this process report to the observer, or to none (nullptr), and returns the previous one.
// Not to be called while work is running.
ProgressObserver* set_progress_observer(ProgressObserver* observer);

// Returns the work that the last exception of this thread ended, the innermost; "" if it ended none.
std::string_view interrupted_work();

// The work of reading a data file.
inline constexpr std::string_view kReadingData = "reading data";
// That of bench which no key of a config changes.
inline constexpr std::string_view kTimingMachine = "timing the machine";

// A piece of work, from construction to destruction. One that starts while another is running is a part of
// that and is not reported.
class ProgressCounter {
 public:
  // `total` in any unit, for example the number of passes.
  ProgressCounter(std::string_view work, double total);
  // Work that no observer is told of.
  explicit ProgressCounter(std::string_view work);
  ~ProgressCounter();
  ProgressCounter(const ProgressCounter&) = delete;
  ProgressCounter& operator=(const ProgressCounter&) = delete;

  // Adds to the work that is done. Any thread may call it.
  void advance(double amount = 1);

 private:
  ProgressObserver* observer_;  // nullptr: this is not reported
  const std::string work_;
  const double total_;
  const int exceptions_;  // being thrown when it began
  std::mutex mutex_;
  double done_ = 0;  // guarded by mutex_
};

}  // namespace thimble
