#include "thimble/inspect/report/label.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "thimble/core/error.h"

namespace thimble {

namespace {

struct Candidate {
  const Pattern* pattern = nullptr;
  const HeadScore* score = nullptr;
};

double strength_of(const HeadScore& score, double value) {
  return strength(value, score.chance, score.attainable);
}

// Whether the head has this pattern, number of queries aside.
bool has_pattern(const HeadScore& score) {
  if (score.eligible == 0 || score.attainable <= score.chance) return false;
  const double now = strength_of(score, score.value);
  const bool unknown = std::isnan(score.at_init);
  return now >= kPatternMargin && (unknown || now - strength_of(score, score.at_init) >= kPatternMargin);
}

// The pattern that names the head, of those with at least `queries`; one without a score if there is none.
Candidate find_pattern(std::span<const HeadScore> scores, std::int64_t queries) {
  const Pattern* found = naming_pattern([&](const Pattern& pattern) -> std::optional<double> {
    const HeadScore& score = find_score(scores, pattern.score);
    if (score.eligible < queries || !has_pattern(score)) return std::nullopt;
    return strength_of(score, score.value);
  });
  return {found, found == nullptr ? nullptr : &find_score(scores, found->score)};
}

// Of NaN nothing is true.
bool is_uniform(const HeadScore& entropy) {
  if (entropy.eligible < kEnoughQueries || entropy.value < kUniformEntropy) return false;
  return 1 - entropy.value <= kUniformShare * (1 - entropy.at_init);
}

bool hurts(const Effect& effect) { return effect.interval.low > 0 || effect.accuracy_interval.high < 0; }

// What is lost without the head: accuracy, or loss where no change of accuracy is certain.
std::string effect_text(const Effect& effect) {
  if (effect.accuracy_interval.high < 0) {
    // As many decimals as the smallest of the three needs to differ from 0.
    const double least = -effect.accuracy_interval.high;
    const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(least))), 2, 6);
    return fmt::format("without it accuracy falls by {:.{}f} ({:.{}f} to {:.{}f})", -effect.accuracy_change,
                       decimals, least, decimals, -effect.accuracy_interval.low, decimals);
  }
  return fmt::format("without it the loss rises by {:.3g} ({:.3g} to {:.3g})", effect.loss_change,
                     effect.interval.low, effect.interval.high);
}

// `numbers` say how strong the pattern is.
Label pattern_label(const std::string& name, const std::string& numbers, const Effect& effect) {
  if (!hurts(effect)) {
    return {name, Verdict::no_effect,
            fmt::format("looks like {}, {}, but nothing depends on it here", name, numbers)};
  }
  return {name, Verdict::shown, fmt::format("{}: {}; {}", name, numbers, effect_text(effect))};
}

std::string full_name(const Candidate& found) {
  if (!found.score->at) return std::string(found.pattern->name);
  const bool relative = found.pattern->score == "offset";
  return relative ? fmt::format("{} {:+}", found.pattern->name, *found.score->at)
                  : fmt::format("{} {}", found.pattern->name, *found.score->at);
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
  if (const Candidate found = find_pattern(scores, kEnoughQueries); found.score != nullptr) {
    const auto& [value, chance] = std::pair(found.score->value, found.score->chance);
    return pattern_label(full_name(found), fmt::format("{:.2f} of the weight (chance {:.2f})", value, chance),
                         zero);
  }
  const HeadScore& entropy = find_score(scores, "entropy");
  if (is_uniform(entropy))
    return pattern_label("uniform", fmt::format("entropy {:.3f} of 1", entropy.value), zero);
  if (const Candidate found = find_pattern(scores, 1); found.score != nullptr) {
    return {"", Verdict::not_enough,
            fmt::format("not enough evidence: may be {}, but {} queries are too few to tell",
                        full_name(found), found.score->eligible)};
  }
  const std::int64_t queries = find_score(scores, "distance").eligible;  // all
  if (queries < kEnoughQueries) {
    return {"", Verdict::not_enough,
            fmt::format("not enough evidence: {} queries are too few to tell", queries)};
  }
  if (hurts(zero)) return {"", Verdict::no_pattern, "matters, no known pattern; " + effect_text(zero)};
  return {"", Verdict::none, "nothing depends on it, no known pattern"};
}

}  // namespace thimble
