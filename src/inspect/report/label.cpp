#include "thimble/inspect/report/label.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "thimble/core/error.h"

namespace thimble {

namespace {

// Every comparison with NaN is false.
bool is_uniform(const HeadScore& entropy) {
  if (entropy.eligible < kEnoughQueries || entropy.value < kUniformEntropy) return false;
  return 1 - entropy.value <= kUniformShare * (1 - entropy.at_init);
}

bool is_costly(const Effect& effect) { return effect.interval.low > 0 || effect.accuracy_interval.high < 0; }

// Returns what ablating a head costs: accuracy, or loss where the interval of accuracy includes 0.
std::string cost_text(const Effect& effect) {
  if (effect.accuracy_interval.high >= 0)
    return fmt::format("ablating it raises the loss by {:.3g} (95 % CI {:.3g}–{:.3g})", effect.loss_change,
                       effect.interval.low, effect.interval.high);
  const double low = -100 * effect.accuracy_interval.high, high = -100 * effect.accuracy_interval.low;
  // The interval has as many decimals as its lower end needs to differ from 0, and its ends from each other.
  const double finest = high > low ? std::min(low, high - low) : low;
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(finest))), 0, 4);
  return fmt::format("ablating it costs {:.{}f} points (95 % CI {:.{}f}–{:.{}f})",
                     -100 * effect.accuracy_change, decimals + 1, low, decimals, high, decimals);
}

// Returns the label of a pattern, whose strength is in `numbers`.
Label pattern_label(const std::string& name, const std::string& numbers, const Effect& effect) {
  if (!is_costly(effect)) {
    return {name, Verdict::no_effect,
            fmt::format("looks like {}: {}, but ablating it has no measurable cost", name, numbers)};
  }
  return {name, Verdict::shown, fmt::format("{}: {}; {}", name, numbers, cost_text(effect))};
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::shown:
      return "shown";
    case Verdict::no_effect:
      return "no_effect";
    case Verdict::no_pattern:
      return "no_pattern";
    case Verdict::not_enough:
      return "not_enough";
    case Verdict::none:
      return "none";
  }
  throw Error("label: unknown verdict");
}

Label label_head(std::span<const HeadScore> scores, const Effect& zero) {
  if (const FoundPattern found = find_pattern(scores); !found.name.empty())
    return pattern_label(found.name, found.numbers, zero);
  const HeadScore& entropy = find_score(scores, "entropy");
  if (is_uniform(entropy))
    return pattern_label("uniform", fmt::format("normalized entropy {:.3f}", entropy.value), zero);
  if (const FoundPattern found = find_pattern(scores, 1); !found.name.empty()) {
    return {"", Verdict::not_enough,
            fmt::format("not enough evidence: possibly {}, but only {} eligible queries, at least {} needed",
                        found.name, found.eligible, kEnoughQueries)};
  }
  const std::int64_t queries = find_score(scores, "distance").eligible;  // all queries are eligible
  if (queries < kEnoughQueries) {
    return {"", Verdict::not_enough,
            fmt::format("not enough evidence: only {} queries, at least {} needed", queries, kEnoughQueries)};
  }
  if (is_costly(zero)) return {"", Verdict::no_pattern, "important, pattern unknown; " + cost_text(zero)};
  return {"", Verdict::none, "no pattern found; ablating it has no measurable cost"};
}

}  // namespace thimble
