#include "inspect/report/summary.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "thimble/train/task.h"

namespace thimble {

namespace {

// Returns what a head with the pattern does: "looks at the token before".
std::string action(const FoundPattern& pattern) {
  constexpr std::pair<std::string_view, std::string_view> kActions[] = {
      {"previous_token", "looks at the token before"},
      {"next_token", "looks at the token after"},
      {"self", "looks at its own position"},
      {"mirror", "looks as far from the end as it is from the start"},
      {"same_token", "looks for the same token elsewhere"},
      {"duplicate_token", "looks for the same token before it"},
      {"induction", "looks at what followed the same token before"},
      {"task_target", "looks at what the answer depends on"},
      {"entropy", "looks at all positions alike"}};
  if (!pattern.kind.empty()) {
    // Kinds of tasks are nouns; those of own data are whatever their user wrote.
    const bool is_noun = std::ranges::any_of(task_names(), [&](std::string_view task) {
      return std::ranges::count(find_task(task).kinds, pattern.kind) > 0;
    });
    return fmt::format("looks at {}{}{}", is_noun ? "the " : "\"", pattern.kind, is_noun ? "" : "\"");
  }
  if (pattern.score == "absolute_position") return fmt::format("looks at position {}", *pattern.at);
  if (pattern.score == "offset")
    return fmt::format("looks {} {} {}", std::abs(*pattern.at),
                       std::abs(*pattern.at) == 1 ? "position" : "positions",
                       *pattern.at < 0 ? "back" : "ahead");
  return std::string(
      std::ranges::find(kActions, pattern.score, [](const auto& row) { return row.first; })->second);
}

// Returns how much of its attention shows the pattern, and of simpler heads: on varied examples, where there are any.
std::string evidence(const FoundPattern& pattern, std::span<const HeadScore> scores) {
  const auto found = std::ranges::find_if(scores, [&](const HeadScore& score) {
    return score.name == pattern.score && score.kind == pattern.kind;
  });
  if (pattern.score == "entropy") return "";
  const ScoreInfo& info = *std::ranges::find(kScoreTable, pattern.score, &ScoreInfo::name);
  const bool is_varied = info.content && found->varied;
  const double value = is_varied ? found->varied->value : found->value,
               simpler = is_varied ? found->varied->matched : found->chance;
  return fmt::format(" ({:.0f} % of its attention{}; {} {:.0f} %)", 100 * value,
                     info.content ? "" : varied_text(*found),
                     is_varied ? "simpler heads" : "uniform attention", 100 * simpler);
}

// Returns a share of answers: "61 of 100 answers that can be known". Where these change the other way, or that is not stated,
// it is of all, which decided the verdict.
std::string answers(const Effect& effect, std::string_view more = "") {
  const bool is_known = effect.knowable_change * effect.accuracy.mean > 0;
  const double change = 100 * std::abs(is_known ? effect.knowable_change : effect.accuracy.mean);
  return fmt::format("{:.{}f}{} of 100 answers{}", change, change < 9.95 ? 1 : 0, more,
                     is_known ? " that can be known" : "");
}

// Returns what the model loses without the head.
std::string loss_text(const Effect& zero, const HeadVerdict& effects) {
  const std::string less_sure = effects.keeps_answers ? "as many answers are right, with less confidence"
                                                      : "the model is less sure of its answers";
  switch (effects.verdict) {
    case Verdict::important:
      return (effects.in_loss ? "without it " + less_sure
                              : fmt::format("without it {} are lost", answers(zero))) +
             (effects.names.empty()
                  ? ""
                  : fmt::format(", but not without {} as well", fmt::join(effects.names, " or ")));
    case Verdict::harmful:
      return effects.in_loss ? "without it the model is surer of its answers"
                             : fmt::format("without it {} are right", answers(zero, " more"));
    case Verdict::minor:
      return "without it little changes, perhaps nothing of interest";
    case Verdict::backup:
      return fmt::format("needed where {} {} missing", fmt::join(effects.names, " and "),
                         effects.names.size() == 1 ? "is" : "are");
    case Verdict::not_enough:
      return zero.labels > 0 ? "whether it is needed takes more sequences to say"
                             : "what it is needed for takes answers to say";
    case Verdict::at_chance:
      return "the model is no better than chance";
    case Verdict::unused:
    case Verdict::redundant:
      break;
  }
  return "without it nothing of interest is lost";
}

}  // namespace

std::string summarize(std::span<const HeadScore> scores, const Effect& zero, const HeadVerdict& effects,
                      const std::optional<CellEffect>& cells) {
  const FoundPattern pattern = cells ? cells->pattern : pattern_of(scores);
  std::string effect = loss_text(zero, effects);
  if (effects.verdict == Verdict::at_chance || effects.verdict == Verdict::unused) return effect;
  const bool is_open =
      !find_pattern(scores, 1).name.empty() || find_score(scores, "distance").eligible < kEnoughQueries;
  if (pattern.name.empty())
    return (is_open ? "what it looks at takes more sequences to say; " : "follows no known pattern; ") +
           effect;
  const std::string seen = action(pattern) + evidence(pattern, scores);
  if (!cells) return seen + "; " + effect;
  if (cells->carried == Carried::constant)
    return "what matters of it depends on the position, not on the input; " + effect;
  const char* needed = cells->carried == Carried::yes  ? "; "
                       : cells->carried == Carried::no ? ", but that is not what it is needed for; "
                                                       : ", which may be what it is needed for; ";
  return seen + needed + effect;
}

}  // namespace thimble
