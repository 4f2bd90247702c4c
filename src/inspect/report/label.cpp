#include "thimble/inspect/label.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace thimble {

namespace {

// Every comparison with NaN is false.
bool is_uniform(const HeadScore& entropy) {
  if (entropy.eligible < kEnoughQueries || entropy.value < kUniformEntropy) return false;
  return 1 - entropy.value <= kUniformShare * (1 - entropy.at_init);
}

// Returns the size of a change of accuracy, with its interval: "5.2 points (95 % CI 5–6)". The interval has as
// many decimals as its lower end needs to differ from 0, and its ends from each other.
std::string points(double change, double low, double high) {
  double finest = high > low ? std::min(std::abs(low), high - low) : std::abs(low);
  if (!(finest > 0)) finest = std::abs(high);
  const int decimals =
      finest > 0 ? std::clamp(static_cast<int>(std::ceil(-std::log10(100 * finest))), 0, 4) : 0;
  return fmt::format("{:.{}f} points (95 % CI {:.{}f}–{:.{}f})", 100 * change, decimals + 1, 100 * low,
                     decimals, 100 * high, decimals);
}

// Returns the effect of an ablation in accuracy, or in loss where that of accuracy is not significant.
std::string cost_text(const std::string& what, const Effect& effect) {
  const Interval &loss = effect.interval, &accuracy = effect.accuracy_interval;
  if (accuracy.high < 0)
    return fmt::format("{} costs {}", what, points(-effect.accuracy_change, -accuracy.high, -accuracy.low));
  if (accuracy.low > 0)
    return fmt::format("{} gains {}", what, points(effect.accuracy_change, accuracy.low, accuracy.high));
  const bool raises = effect.loss_change >= 0;
  return fmt::format("{} {} the loss by {:.3g} (95 % CI {:.3g}–{:.3g})", what, raises ? "raises" : "lowers",
                     std::abs(effect.loss_change), raises ? loss.low : -loss.high,
                     raises ? loss.high : -loss.low);
}

// Returns what is known about the effect, which follows the pattern in a sentence.
std::string effect_text(const Effect& zero, const HeadVerdict& effects) {
  switch (effects.verdict) {
    case Verdict::important:
      return cost_text("ablating it", zero);
    case Verdict::harmful:
      return "harmful: " + cost_text("ablating it", zero);
    case Verdict::backup: {
      const bool pair = effects.names.size() == 1;
      return fmt::format("backup for {}: {}", fmt::join(effects.names, ", "),
                         cost_text(pair ? "ablating both" : "ablating all", effects.group_effect));
    }
    case Verdict::not_enough:
      if (!std::isfinite(zero.interval.low))
        return "not enough evidence of its effect: a single sequence has no confidence interval";
      return fmt::format(
          "not enough evidence of its effect: accuracy changes by {:.2f} to {:.2f} points, loss by {:.2g} to {:.2g}; analyze more sequences",
          100 * zero.accuracy_interval.low, 100 * zero.accuracy_interval.high, zero.interval.low,
          zero.interval.high);
    default:
      return "ablating it costs nothing of interest, alone or with other heads";
  }
}

// Returns the label of a pattern, whose strength is in `numbers`.
Label pattern_label(const std::string& name, const std::string& numbers, const Effect& zero,
                    const HeadVerdict& effects) {
  if (effects.verdict == Verdict::unused)
    return {name, Verdict::redundant,
            fmt::format("looks like {}: {}, but {}", name, numbers, effect_text(zero, effects))};
  if (effects.verdict == Verdict::not_enough)
    return {"", Verdict::not_enough,
            fmt::format("possibly {}: {}; {}", name, numbers, effect_text(zero, effects))};
  return {name, effects.verdict, fmt::format("{}: {}; {}", name, numbers, effect_text(zero, effects)),
          effects.group};
}

// Returns the label of a head without a pattern.
Label label_without_pattern(const Effect& zero, const HeadVerdict& effects) {
  const std::string effect = effect_text(zero, effects);
  if (effects.verdict == Verdict::unused) return {"", Verdict::unused, "no pattern found; " + effect};
  if (effects.verdict == Verdict::important)
    return {"", Verdict::important, "important, pattern unknown; " + effect};
  return {"", effects.verdict, effect, effects.group};
}

}  // namespace

Label label_head(std::span<const HeadScore> scores, const Effect& zero, const HeadVerdict& effects) {
  if (effects.verdict == Verdict::at_chance)
    return {"", Verdict::at_chance, "no label: the model is no better than chance"};
  if (const FoundPattern found = find_pattern(scores); !found.name.empty())
    return pattern_label(found.name, found.numbers, zero, effects);
  const HeadScore& entropy = find_score(scores, "entropy");
  if (is_uniform(entropy))
    return pattern_label("uniform", fmt::format("normalized entropy {:.3f}", entropy.value), zero, effects);
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
  return label_without_pattern(zero, effects);
}

}  // namespace thimble
