#include "thimble/inspect/label.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "inspect/report/summary.h"
#include "train/files/text/format.h"

namespace thimble {

namespace {

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

// Returns the effect of an ablation in the measure that decided.
std::string cost_text(const std::string& what, const Effect& effect, const HeadVerdict& verdict) {
  const bool costs = verdict.in_loss ? effect.capped_loss.mean >= 0 : effect.accuracy.mean <= 0;
  const BoundedChange& change = verdict.in_loss ? effect.capped_loss : effect.accuracy;
  const bool is_up = change.mean >= 0;
  const double size = std::abs(change.mean), low = is_up ? change.interval.low : -change.interval.high,
               high = is_up ? change.interval.high : -change.interval.low;
  if (!verdict.in_loss)
    return fmt::format("{} {} {}", what, costs ? "costs" : "gains", points(size, low, high));
  return fmt::format("{} {} the loss by {:.3g} (95 % CI {:.3g}–{:.3g}), capped at {:.2g} nats an answer",
                     what, costs ? "raises" : "lowers", size, low, high, verdict.loss_cap);
}

// Returns what more sequences would do for a head whose effect is open.
std::string needed_text(const HeadVerdict& verdict) {
  if (!verdict.needed) return "analyze more sequences";
  return fmt::format("about {} sequences would do if its effect is what it seems",
                     grouped(static_cast<std::int64_t>(std::ceil(*verdict.needed))));
}

// Returns what is known about the effect, which follows the pattern in a sentence.
std::string effect_text(const Effect& zero, const HeadVerdict& effects) {
  switch (effects.verdict) {
    case Verdict::important:
      return cost_text("ablating it", zero, effects) +
             (effects.names.empty() ? ""
                                    : fmt::format("; ablated together with {} it costs nothing of interest",
                                                  fmt::join(effects.names, " or ")));
    case Verdict::harmful:
      return "harmful: " + cost_text("ablating it", zero, effects);
    case Verdict::minor:
      return "perhaps not of interest: " + cost_text("ablating it", zero, effects);
    case Verdict::backup:
      return fmt::format("backup for {}: without {}, {}", fmt::join(effects.names, ", "),
                         effects.names.size() == 1 ? "it" : "them",
                         cost_text("ablating this one", effects.worth, effects));
    case Verdict::not_enough:
      if (!std::isfinite(zero.accuracy.interval.low))
        return "not enough evidence of its effect: no answer was analyzed";
      return fmt::format(
          "not enough evidence of its effect: accuracy changes by {:.2f} to {:.2f} points, loss by {:.2g} to {:.2g}, capped at {:.2g} nats an answer; {}",
          100 * zero.accuracy.interval.low, 100 * zero.accuracy.interval.high, zero.capped_loss.interval.low,
          zero.capped_loss.interval.high, effects.loss_cap, needed_text(effects));
    default:
      return fmt::format("ablating it costs nothing of interest, alone{}",
                         effects.in_pairs ? " or with any one other head" : "");
  }
}

// Returns how much of the effect the cells of a pattern keep: "these keys alone keep 98 % of what it does beyond its mean".
std::string cells_text(const CellEffect& cells) {
  return fmt::format("{}these keys alone keep {:.0f} % of what it does beyond its mean",
                     cells.without.empty() ? "" : fmt::format("without {}, ", fmt::join(cells.without, ", ")),
                     100 * cells.kept());
}

// Returns the label of a pattern that is tested, of a head that does something.
Label carried_label(const CellEffect& cells, const std::string& effect, const HeadVerdict& effects) {
  const auto& [name, numbers] = std::tie(cells.pattern.name, cells.pattern.numbers);
  const bool carries = cells.carried == Carried::yes;
  const char* form = "possibly {}: {}; {}; whether these keys carry its effect needs more sequences";
  if (carries) form = "{}: {}; {}; {}";
  if (cells.carried == Carried::no) form = "attends by {0}, which does not carry its effect: {1}; {3}; {2}";
  if (cells.carried == Carried::constant)
    form =
        "acts like a constant: its mean at each position in its place costs nothing of interest; looks like {}: {}; {}";
  return {carries ? name : "", effects.verdict,
          fmt::format(fmt::runtime(form), name, numbers, effect, cells_text(cells)), effects.group};
}

// Returns the label of a pattern.
Label pattern_label(const FoundPattern& found, const Effect& zero, const HeadVerdict& effects,
                    const std::optional<CellEffect>& cells) {
  const auto& [name, numbers] = std::tie(found.name, found.numbers);
  const std::string effect = effect_text(zero, effects);
  if (effects.verdict == Verdict::unused)
    return {name, Verdict::redundant, fmt::format("looks like {}: {}, but {}", name, numbers, effect)};
  if (effects.verdict == Verdict::not_enough || !cells)
    return {"", effects.verdict, fmt::format("possibly {}: {}; {}", name, numbers, effect), effects.group};
  return carried_label(*cells, effect, effects);
}

// Returns the label of a head without a pattern.
Label label_without_pattern(std::span<const HeadScore> scores, const Effect& zero,
                            const HeadVerdict& effects) {
  const std::string effect = effect_text(zero, effects);
  if (effects.verdict == Verdict::unused) return {"", Verdict::unused, "no pattern found; " + effect};
  if (effects.verdict != Verdict::important) return {"", effects.verdict, effect, effects.group};
  const FoundPattern usual = find_unconfirmed(scores);
  return {"", Verdict::important,
          fmt::format(
              "important, pattern unknown; {}{}", effect,
              usual.name.empty() ? "" : fmt::format("; {} not confirmed: {}", usual.name, usual.numbers))};
}

// Returns the label without its summary.
Label make_label(std::span<const HeadScore> scores, const Effect& zero, const HeadVerdict& effects,
                 const std::optional<CellEffect>& cells) {
  if (effects.verdict == Verdict::at_chance)
    return {"", Verdict::at_chance, "no label: the model is no better than chance"};
  if (const FoundPattern found = cells ? cells->pattern : pattern_of(scores); !found.name.empty())
    return pattern_label(found, zero, effects, cells);
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
  return label_without_pattern(scores, zero, effects);
}

}  // namespace

Label label_head(std::span<const HeadScore> scores, const Effect& zero, const HeadVerdict& effects,
                 const std::optional<CellEffect>& cells) {
  Label label = make_label(scores, zero, effects, cells);
  label.summary = summarize(scores, zero, effects, cells);
  return label;
}

namespace {

HypothesisTest judge_hypothesis(const FoundPattern& found, const std::optional<CellEffect>& cells,
                                const HeadVerdict& effects, const Effect& zero) {
  HypothesisTest test{.name = found.name, .cells = cells};
  if (found.eligible < kEnoughQueries) {
    test.sentence = fmt::format("{}: only {} queries have such a key, at least {} needed", found.name,
                                found.eligible, kEnoughQueries);
    return test;
  }
  if (found.is_rival) {
    test.answer = found.is_unconfirmed ? Confirmed::open : Confirmed::no;
    test.sentence =
        fmt::format("{}: {}; {}", found.name, found.numbers,
                    found.is_unconfirmed ? R"(not confirmed on shuffled rows: give some with "varied": true)"
                                         : "no more than simpler heads have, or too little");
    return test;
  }
  if (zero.labels == 0) {
    test.sentence = fmt::format("{}: {}; what it is needed for takes rows with a target to say", found.name,
                                found.numbers);
    return test;
  }
  const Verdict verdict = effects.verdict;
  test.sentence = pattern_label(found, zero, effects, cells).sentence;
  if (verdict == Verdict::unused || verdict == Verdict::at_chance ||
      (cells && (cells->carried == Carried::no || cells->carried == Carried::constant)))
    test.answer = Confirmed::no;
  return test;
}

}  // namespace

std::vector<std::vector<HypothesisTest>> judge_hypotheses(
    std::span<const std::vector<FoundPattern>> patterns,
    std::span<const std::vector<std::optional<CellEffect>>> cells, std::span<const HeadVerdict> verdicts,
    std::span<const Effect> zero) {
  std::vector<double> p;
  for (const std::vector<std::optional<CellEffect>>& tests : cells)
    for (const std::optional<CellEffect>& test : tests) p.push_back(test ? test->p : 1);
  p = holm(p);
  std::vector<std::vector<HypothesisTest>> all(verdicts.size());
  for (std::size_t k = 0; k < patterns.size(); ++k)
    for (std::size_t head = 0; head < verdicts.size(); ++head) {
      HypothesisTest& test = all[head].emplace_back(
          judge_hypothesis(patterns[k][head], cells[k][head], verdicts[head], zero[head]));
      test.p = p[k * verdicts.size() + head];
      const bool is_carried = test.cells && test.cells->carried == Carried::yes;
      if (is_carried && test.p <= kErrorRate && test.answer == Confirmed::open) test.answer = Confirmed::yes;
      if (test.cells) test.sentence += fmt::format("; p {:.2g}", test.p);
    }
  return all;
}

Json to_json(const HypothesisTest& test) {
  constexpr std::string_view kAnswers[] = {"yes", "no", "open"};  // by Confirmed
  return {{"name", test.name},
          {"answer", kAnswers[static_cast<std::size_t>(test.answer)]},
          {"p", test.p},
          {"cells", test.cells ? to_json(*test.cells) : Json()},
          {"sentence", test.sentence}};
}

}  // namespace thimble
