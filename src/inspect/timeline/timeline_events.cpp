#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "thimble/inspect/patterns.h"
#include "thimble/inspect/scores.h"
#include "thimble/inspect/timeline.h"

namespace thimble {

namespace {

std::optional<double> find(const ScoresByName& scores, std::string_view name) {
  const auto found = scores.find(std::string(name));
  return found == scores.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<double> strength(const HeadSnapshot& step, std::size_t head, std::string_view score) {
  if (head >= step.heads.size()) return std::nullopt;
  const HeadSnapshot::Head& h = step.heads[head];
  const auto value = find(h.scores, score), chance = find(h.chance.empty() ? step.chance : h.chance, score),
             attainable = find(h.chance.empty() ? step.attainable : h.attainable, score);
  if (!value || !chance || !attainable || *attainable <= *chance) return std::nullopt;
  return strength(*value, *chance, *attainable);
}

std::string_view best_pattern(const HeadSnapshot& step, std::size_t head, Patterns patterns) {
  const ScoreInfo* found = naming_pattern([&](const ScoreInfo& score) {
    const bool refuted = score.content && head < patterns.size() && patterns[head] != score.name;
    return refuted ? std::nullopt : strength(step, head, score.name);
  });
  return found == nullptr ? std::string_view() : found->name;
}

namespace {

struct Change {
  std::size_t before, after;
};

// Returns the main part of the rise from `base` to the last value; the first value is at most `base`.
Change main_rise(std::span<const double> values, double base) {
  const double rise = values.back() - base;
  std::size_t half = values.size() - 1;
  while (values[half - 1] >= base + rise / 2) --half;
  Change change{half - 1, half};
  while (change.before > 0 && values[change.before] > base + rise / 4) --change.before;
  while (values[change.after] < base + 3 * rise / 4) ++change.after;
  return change;
}

// Returns the main part of the fall from the first value to the last.
Change main_fall(std::span<const double> values) {
  const std::vector<double> back(values.rbegin(), values.rend());
  const Change rise = main_rise(back, back.front());
  return {values.size() - 1 - rise.after, values.size() - 1 - rise.before};
}

// Returns the length of the run of values of at least `threshold` around `peak`.
std::size_t run_length(std::span<const double> values, std::size_t peak, double threshold) {
  std::size_t first = peak, last = peak;
  while (first > 0 && values[first - 1] >= threshold) --first;
  while (last + 1 < values.size() && values[last + 1] >= threshold) ++last;
  return last - first + 1;
}

class Finder {
 public:
  Finder(const std::vector<HeadSnapshot>& steps, Patterns patterns) : steps_(steps), patterns_(patterns) {}

  std::vector<HeadEvent> find() {
    if (steps_.size() < 2) return {};
    for (std::size_t head = 0; head < steps_.front().heads.size(); ++head) {
      const auto first = static_cast<std::ptrdiff_t>(events_.size());
      for (const ScoreInfo& score : kScoreTable)
        if (!score.noun.empty()) find_changes(head, score.name);
      std::ranges::stable_sort(events_.begin() + first, events_.end(), {}, &HeadEvent::after);
    }
    return std::move(events_);
  }

 private:
  // Returns the strengths of a score at every step; empty when it is unknown at one of them.
  std::vector<double> strengths(std::size_t head, std::string_view score) const {
    std::vector<double> found;
    for (const HeadSnapshot& step : steps_) {
      const auto one = strength(step, head, score);
      if (!one) return {};
      found.push_back(*one);
    }
    return found;
  }

  void find_changes(std::size_t head, std::string_view score) {
    const std::vector<double> all = strengths(head, score);
    if (all.empty()) return;
    const double base = std::max(0.0, all.front());
    const auto peak = static_cast<std::size_t>(std::ranges::max_element(all) - all.begin());
    const double half = base + (all[peak] - base) / 2;
    const std::size_t last = all.size() - 1;
    const auto has_pattern = [&](std::size_t at) {
      return all[at] - base >= kPatternMargin && best_pattern(steps_[at], head, patterns_) == score;
    };
    if (has_pattern(last) && all[last] >= half) add(head, score, true, main_rise(all, base));
    constexpr std::size_t kMinRun = 3;
    if (all[last] >= half || !has_pattern(peak) || run_length(all, peak, half) < kMinRun) return;
    add(head, score, true, main_rise(std::span(all).first(peak + 1), base));
    const Change fall = main_fall(std::span(all).subspan(peak));
    add(head, score, false, {peak + fall.before, peak + fall.after});
  }

  void add(std::size_t head, std::string_view score, bool formed, Change change) {
    const HeadSnapshot &before = steps_[change.before], &after = steps_[change.after];
    events_.push_back({.id = before.heads[head].id,
                       .attention = before.heads[head].attention,
                       .score = std::string(score),
                       .formed = formed,
                       .before = before.step,
                       .after = after.step,
                       .loss_before = before.loss,
                       .loss_after = after.loss});
  }

  const std::vector<HeadSnapshot>& steps_;
  Patterns patterns_;
  std::vector<HeadEvent> events_;
};

}  // namespace

std::vector<HeadEvent> find_events(const std::vector<HeadSnapshot>& steps, Patterns patterns) {
  return Finder(steps, patterns).find();
}

std::string sentence(const HeadEvent& e) {
  const auto score = std::ranges::find(kScoreTable, e.score, &ScoreInfo::name);
  std::string text = fmt::format("head {} {} {} between steps {} and {}", e.id.name(e.attention),
                                 e.formed ? "became" : "stopped being", score->noun, e.before, e.after);
  if (!std::isfinite(e.loss_before) || !std::isfinite(e.loss_after)) return text;
  const std::string from = fmt::format("{:.2g}", e.loss_before), to = fmt::format("{:.2g}", e.loss_after);
  if (from == to) return text + fmt::format(", when the loss stayed at {}", from);
  const char* moved = e.loss_after < e.loss_before ? "fell" : "rose";
  return text + fmt::format(", when the loss {} from {} to {}", moved, from, to);
}

}  // namespace thimble
