#include "thimble/inspect/patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace thimble {

const ScoreInfo* naming_pattern(const std::function<std::optional<double>(const ScoreInfo&)>& strength_of) {
  constexpr double kRounding = 1e-9;
  struct Strongest {
    const ScoreInfo* score = nullptr;
    double strength = -std::numeric_limits<double>::infinity();
  };
  std::array<Strongest, 4> kinds;
  double strongest = kinds[0].strength;
  for (const ScoreInfo& score : kScoreTable) {
    const std::optional<double> strength = score.noun.empty() ? std::nullopt : strength_of(score);
    if (!strength) continue;
    Strongest& best = kinds[static_cast<std::size_t>(score.kind)];
    const bool first = best.score == nullptr || score.order < best.score->order;
    if (*strength <= best.strength + (first ? -kRounding : kRounding)) continue;
    best = {&score, *strength};
    strongest = std::max(strongest, *strength);
  }
  for (const Strongest& best : kinds) {
    if (best.score == nullptr || best.strength < strongest - kAmbiguous) continue;
    // Where the queries never part them, a position is simpler than a distance from it or from the end.
    const bool is_distance = best.score->name == "mirror" || best.score->name == "offset";
    return is_distance && kinds[3].strength >= best.strength - kRounding ? kinds[3].score : best.score;
  }
  return nullptr;
}

namespace {

// Returns whether the odds of a value are at least kMatchedOdds times those of a baseline, with `attainable` as
// the certain event; two certain events have the same.
bool exceeds(double value, double baseline, double attainable) {
  return value > baseline &&
         value * (attainable - baseline) >= kMatchedOdds * baseline * (attainable - value);
}

// Returns the strength of a pattern, on the usual or the varied examples, whichever is less; nullopt where the
// head does not have it, or too few queries show it.
std::optional<double> pattern_strength(const HeadScore& score, bool content, std::int64_t queries) {
  if (content && (!score.varied || std::isnan(score.same_class))) return std::nullopt;
  if (score.eligible < queries || score.eligible == 0 || score.attainable <= score.chance)
    return std::nullopt;
  const double usual = strength(score.value, score.chance, score.attainable);
  const double risen =
      std::isnan(score.at_init) ? usual : usual - strength(score.at_init, score.chance, score.attainable);
  if (std::min(usual, risen) < kPatternMargin) return std::nullopt;
  if (content && !exceeds(score.value, score.same_class, score.attainable)) return std::nullopt;
  if (!score.varied) return usual;
  const HeadScore::Varied& v = *score.varied;
  const double varied = strength(v.value, v.chance, v.attainable);
  const double least = content ? std::min(kPatternMargin, usual / 2) : usual / 2;
  if (v.eligible < queries || varied < least) return std::nullopt;
  if (v.matched > v.chance && !exceeds(v.value, v.matched, v.attainable)) return std::nullopt;
  return std::min(usual, varied);
}

// Returns the score that stands for a pattern, of those of its name: that of a single kind that has it, or else
// the one of all kinds, or else the strongest kind. Null: the head does not have it.
const HeadScore* pattern_score(std::span<const HeadScore> scores, const ScoreInfo& info,
                               std::int64_t queries) {
  const HeadScore *all = nullptr, *strongest = nullptr;
  int kinds = 0;
  double best = 0;
  for (const HeadScore& score : scores) {
    if (score.name != info.name) continue;
    const std::optional<double> found = pattern_strength(score, info.content, queries);
    if (!found) continue;
    if (score.kind.empty()) all = &score;
    if (score.kind.empty()) continue;
    ++kinds;
    if (*found > best) strongest = &score;
    best = std::max(best, *found);
  }
  return strongest != nullptr && (kinds == 1 || all == nullptr) ? strongest : all;
}

std::string percentage(double share) {
  return share > 0 && share < 0.01 ? fmt::format("{:.1g} %", 100 * share)
                                   : fmt::format("{:.0f} %", 100 * share);
}

}  // namespace

std::string varied_text(const HeadScore& score) {
  constexpr double kLess = 0.9;
  if (!score.varied || !(score.varied->value < kLess * score.value)) return "";
  return fmt::format(", {} where position and content part", percentage(score.varied->value));
}

namespace {

std::string full_name(std::string_view label, const HeadScore& score) {
  if (!score.kind.empty()) return fmt::format("{} ({})", label, score.kind);
  if (!score.at) return std::string(label);
  return score.name == "offset" ? fmt::format("{} {:+}", label, *score.at)
                                : fmt::format("{} {}", label, *score.at);
}

std::string numbers_of(bool content, const HeadScore& score) {
  std::string text = fmt::format("{} of its attention", percentage(score.value));
  if (score.majority > kSplit && score.majority < 1 - kSplit)
    text += fmt::format(", more than half at {} of the queries", percentage(score.majority));
  text += fmt::format(" (chance {}", percentage(score.chance));
  if (!content) return text + ")" + varied_text(score);
  if (!score.varied) return text + ")";
  return text + fmt::format(", matched {}), {} where position and content part (matched {})",
                            percentage(score.matched()), percentage(score.varied->value),
                            percentage(score.varied->matched));
}

FoundPattern pattern_from(const ScoreInfo& info, const HeadScore& score) {
  return {full_name(info.label, score),
          numbers_of(info.content, score),
          info.name,
          std::min(score.eligible, score.varied ? score.varied->eligible : score.eligible),
          score.at,
          score.kind};
}

}  // namespace

FoundPattern find_pattern(std::span<const HeadScore> scores, std::int64_t queries) {
  const ScoreInfo* const found = naming_pattern([&](const ScoreInfo& info) -> std::optional<double> {
    const HeadScore* const score = pattern_score(scores, info, queries);
    if (score == nullptr) return std::nullopt;
    return pattern_strength(*score, info.content, queries);
  });
  if (found == nullptr) return {};
  return pattern_from(*found, *pattern_score(scores, *found, queries));
}

FoundPattern pattern_of(std::span<const HeadScore> scores) {
  FoundPattern found = find_pattern(scores);
  const HeadScore& entropy = find_score(scores, "entropy");
  // Every comparison with NaN is false.
  const bool is_uniform = entropy.eligible >= kEnoughQueries && entropy.value >= kUniformEntropy &&
                          1 - entropy.value <= kUniformShare * (1 - entropy.at_init);
  if (found.name.empty() && is_uniform)
    found = {"uniform", fmt::format("normalized entropy {:.3f}", entropy.value), entropy.name,
             entropy.eligible};
  return found;
}

std::vector<FoundPattern> alternatives(const FoundPattern& found, std::span<const HeadScore> scores) {
  std::vector<FoundPattern> all;
  const ScoreInfo& info = *std::ranges::find(kScoreTable, found.score, &ScoreInfo::name);
  for (const HeadScore& score : scores)
    if (found.score == "task_target" && score.name == found.score) {
      all.push_back(pattern_from(info, score));
      all.back().is_rival = !pattern_strength(score, info.content, kEnoughQueries);
    }
  return all.size() > 1 ? all : std::vector{found};
}

FoundPattern hypothesis_pattern(HeadScore score, bool positional, bool shuffled) {
  const ScoreInfo& info = *std::ranges::find(kScoreTable, "task_target", &ScoreInfo::name);
  HeadScore usual = score;
  usual.varied.reset();
  const bool has_usual = pattern_strength(usual, false, kEnoughQueries).has_value();
  if (positional) {
    score.same_positions = std::numeric_limits<double>::quiet_NaN();
    score.varied->matched = score.varied->chance;
  }
  FoundPattern found = pattern_from(info, positional && shuffled ? usual : score);
  found.is_rival = positional && shuffled ? !has_usual : !pattern_strength(score, true, kEnoughQueries);
  found.is_unconfirmed = found.is_rival && shuffled && has_usual;
  if (positional && shuffled) found.numbers += ", of rows whose keys follow from their length";
  return found;
}

FoundPattern find_unconfirmed(std::span<const HeadScore> scores) {
  std::vector<HeadScore> usual(scores.begin(), scores.end());
  for (HeadScore& score : usual)
    if (score.varied)
      score.varied = {score.value, score.chance, score.chance, score.attainable, score.eligible};
  FoundPattern found = find_pattern(usual);
  for (const HeadScore& score : scores)
    if (score.name == found.score && score.kind == found.kind && score.varied)
      found.numbers = fmt::format("{} of its attention, but {} where position and content part (matched {})",
                                  percentage(score.value), percentage(score.varied->value),
                                  percentage(score.varied->matched));
  return found;
}

}  // namespace thimble
