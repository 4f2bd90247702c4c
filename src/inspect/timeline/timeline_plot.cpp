#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "thimble/inspect/timeline.h"
#include "train/files/text/width.h"

namespace thimble {

namespace {

struct Row {
  std::string label;
  std::vector<double> values;  // by snapshot; NaN where unknown
  double highest;              // end of the scale, which starts at 0
};

Row loss_row(const std::vector<HeadSnapshot>& steps) {
  Row row{"loss", {}, 0};
  for (const HeadSnapshot& step : steps) {
    row.values.push_back(step.loss);
    if (std::isfinite(step.loss)) row.highest = std::max(row.highest, step.loss);
  }
  return row;
}

Row score_row(const std::vector<HeadSnapshot>& steps, std::size_t head, const std::string& score) {
  const HeadSnapshot::Head& h = steps.back().heads[head];
  Row row{fmt::format("{} {}", h.id.name(h.attention), score), {}, 1};
  std::ranges::replace(row.label, '_', ' ');
  for (const HeadSnapshot& step : steps) {
    const bool known = head < step.heads.size() && step.heads[head].scores.contains(score);
    row.values.push_back(known ? step.heads[head].scores.at(score) : std::nan(""));
  }
  return row;
}

// Returns the scores of a head's events, or without an event its best pattern at the end.
std::vector<std::string> most_informative_scores(const std::vector<HeadSnapshot>& steps,
                                                 const std::vector<HeadEvent>& events, std::size_t head,
                                                 Patterns patterns) {
  const HeadSnapshot::Head& h = steps.back().heads[head];
  std::vector<std::string> scores;
  for (const HeadEvent& e : events) {
    const bool new_one = std::ranges::find(scores, e.score) == scores.end();
    if (e.id == h.id && new_one) scores.push_back(e.score);
  }
  if (scores.empty()) scores.emplace_back(best_pattern(steps.back(), head, patterns));
  std::erase(scores, "");
  return scores;
}

// Returns the axis: step 0, the powers of ten and the last step, at their columns where there is room.
std::string axis(const std::vector<HeadSnapshot>& steps, const std::vector<std::size_t>& columns) {
  std::string line;
  std::int64_t next = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::int64_t step = steps[columns[c]].step;
    if (step < next || (c > 0 && line.size() >= c)) continue;
    line.resize(c, ' ');
    line += std::to_string(step);
    next = std::max<std::int64_t>(1, next);
    while (next <= step) next *= 10;
  }
  const std::string last = std::to_string(steps.back().step);
  if (line.size() + 1 + last.size() <= columns.size()) {
    line.resize(columns.size() - last.size(), ' ');
    line += last;
  }
  return line;
}

}  // namespace

std::string draw(const std::vector<HeadSnapshot>& steps, bool plain, std::size_t width, Patterns patterns) {
  if (steps.empty()) return "";
  const std::vector<HeadEvent> events = find_events(steps, patterns);
  std::vector<Row> rows{loss_row(steps)};
  for (std::size_t head = 0; head < steps.back().heads.size(); ++head)
    for (const std::string& score : most_informative_scores(steps, events, head, patterns))
      rows.push_back(score_row(steps, head, score));

  constexpr std::size_t kNumber = 8;  // width of the last value
  std::size_t label = 4;
  for (Row& row : rows) {
    row.label = truncated(row.label, std::max(label, width - kNumber - width / 4));
    label = std::max(label, row.label.size());
  }
  const std::size_t room = width - std::min(width - 1, label + 1 + kNumber);
  std::vector<std::size_t> columns(std::min(room, steps.size()));
  for (std::size_t c = 0; c < columns.size(); ++c) columns[c] = (c + 1) * steps.size() / columns.size() - 1;

  std::string text = fmt::format("{:<{}} {}\n", "step", label, axis(steps, columns));
  for (const Row& row : rows) {
    std::vector<double> shown;
    for (const std::size_t i : columns) shown.push_back(row.values[i]);
    text += fmt::format("{:<{}} {} {:>7.3g}\n", row.label, label, bars(shown, row.highest, plain),
                        row.values.back());
  }
  return text;
}

}  // namespace thimble
