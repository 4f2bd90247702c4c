#include "thimble/inspect/scores/patterns.h"

#include <algorithm>
#include <array>
#include <limits>

namespace thimble {

const Pattern* naming_pattern(const std::function<std::optional<double>(const Pattern&)>& strength_of) {
  constexpr double kRounding = 1e-9;
  struct Strongest {
    const Pattern* pattern = nullptr;
    double strength = -std::numeric_limits<double>::infinity();
  };
  std::array<Strongest, 4> kinds;
  double strongest = kinds[0].strength;
  for (const Pattern& pattern : kPatterns) {
    const std::optional<double> strength = strength_of(pattern);
    Strongest& best = kinds[static_cast<std::size_t>(pattern.kind)];
    if (!strength || *strength <= best.strength + kRounding) continue;
    best = {&pattern, *strength};
    strongest = std::max(strongest, *strength);
  }
  for (const Strongest& best : kinds)
    if (best.pattern != nullptr && best.strength >= strongest - kAmbiguous) return best.pattern;
  return nullptr;
}

}  // namespace thimble
