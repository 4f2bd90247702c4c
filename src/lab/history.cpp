#include "lab/history.h"

#include <fmt/ranges.h>

#include <iterator>

#include "thimble/core/error.h"
#include "thimble/train/run.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

void History::keep(std::int64_t step, std::span<const Real> weights) {
  steps_[step].assign(weights.begin(), weights.end());
  if (bytes() > kBytes) thin(false);
  while (bytes() > kBytes && steps_.size() > 2) thin(true);
}

void History::thin(bool all) {
  bool removes = true;
  for (auto i = std::next(steps_.begin()); i != steps_.end() && std::next(i) != steps_.end();) {
    if (!all && in_series(i->first)) {
      ++i;
      continue;
    }
    i = removes ? steps_.erase(i) : std::next(i);
    removes = !removes;
  }
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
