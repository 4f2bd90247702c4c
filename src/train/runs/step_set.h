// Sets of the steps of a run.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace thimble {

// A set of steps, as ranges: a log has most steps in a row.
class StepSet {
 public:
  // Returns whether the step, 0 or more, was not there.
  bool insert(std::int64_t step) {
    const auto next = ranges_.upper_bound(step);
    auto at = next == ranges_.begin() ? ranges_.end() : std::prev(next);
    if (at != ranges_.end() && at->second >= step) return false;
    if (at == ranges_.end() || at->second != step - 1) at = ranges_.emplace_hint(next, step, step);
    at->second = step;
    if (next == ranges_.end() || next->first - 1 != step) return true;
    at->second = next->second;
    ranges_.erase(next);
    return true;
  }

 private:
  std::map<std::int64_t, std::int64_t> ranges_;  // first and last
};

}  // namespace thimble
