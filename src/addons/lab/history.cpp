#include "addons/lab/history.h"

#include <fmt/ranges.h>

#include <iterator>

#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

void History::keep(std::int64_t step, std::span<const Real> weights) {
  steps_[step].assign(weights.begin(), weights.end());
  while (bytes() > kBytes && steps_.size() > 2) drop();
}

void History::drop() {
  const auto gap = [](auto i) {
    return static_cast<double>(std::next(i)->first + 1) / static_cast<double>(std::prev(i)->first + 1);
  };
  auto least = std::next(steps_.begin());
  for (auto i = least; std::next(i) != steps_.end(); ++i)
    if (gap(i) < gap(least)) least = i;
  steps_.erase(least);
}

std::span<const Real> History::at(std::int64_t step) const {
  const auto found = steps_.find(step);
  if (found != steps_.end()) return found->second;
  std::vector<std::int64_t> kept;
  for (const auto& entry : steps_) kept.push_back(entry.first);
  throw ConfigError(
      fmt::format("at: there are no weights of step {}; choose one of {}", step, fmt::join(kept, ", ")));
}

std::size_t History::bytes() const {
  return steps_.empty() ? 0 : steps_.size() * steps_.begin()->second.size() * sizeof(Real);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
