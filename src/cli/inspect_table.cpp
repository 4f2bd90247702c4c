#include <algorithm>
#include <cmath>
#include <map>

#include "cli/heat_map.h"
#include "cli/inspect.h"
#include "thimble/data/listing.h"

namespace thimble::cli {

namespace {

// Scores that the table has room for, and what it calls them.
constexpr std::pair<std::string_view, std::string_view> kColumns[] = {{"previous_token", "prev"},
                                                                      {"next_token", "next"},
                                                                      {"mirror", "mirror"},
                                                                      {"same_token", "same"},
                                                                      {"duplicate_token", "dupl"},
                                                                      {"induction", "induct"},
                                                                      {"task_target", "target"},
                                                                      {"offset", "offset"},
                                                                      {"absolute_position", "position"},
                                                                      {"self", "self"}};
constexpr std::size_t kScoreColumns = 2;
constexpr std::size_t kPlaceAndLabel = 28;

// The columns in which some head stands out most, in the order above.
std::vector<std::pair<std::string_view, std::string_view>> telling_columns(const InspectReport& report) {
  std::vector<std::pair<double, std::size_t>> found;
  for (std::size_t i = 0; i < std::size(kColumns); ++i) {
    double best = 0;
    for (const HeadReport& head : report.heads) {
      const HeadScore& score = find_score(head.scores, kColumns[i].first);
      best = std::max(best, strength(score.value, score.chance, score.attainable));
    }
    found.emplace_back(-best, i);
  }
  std::ranges::sort(found);
  found.resize(kScoreColumns);
  std::ranges::sort(found, {}, &std::pair<double, std::size_t>::second);
  std::vector<std::pair<std::string_view, std::string_view>> out;
  for (const auto& [best, i] : found) out.push_back(kColumns[i]);
  return out;
}

std::string number(const HeadScore& score) {
  return score.eligible > 0 ? fmt::format("{:.3f}", score.value) : "-";
}

// In brackets: nothing depends on the head.
std::string label_text(const Label& label) {
  switch (label.verdict) {
    case Verdict::shown:
      return label.name;
    case Verdict::no_effect:
      return "(" + label.name + ")";
    case Verdict::no_pattern:
      return "needed, unknown";
    case Verdict::not_enough:
      return "too few queries";
    case Verdict::none:
      break;
  }
  return "-";
}

void print_maps(const InspectReport& report, const HeadChoice& heads) {
  const bool chosen = heads.layer || heads.head;
  constexpr std::size_t kMost = 4;
  constexpr std::int64_t kLongest = 74;
  if (const std::int64_t longest = std::max(report.length, report.source_length); longest > kLongest)
    return print_out("\n{} positions are too many to draw in 80 columns; see --html or --npy\n", longest);
  const std::vector<Place> all = places(report.config.model);
  std::vector<const HeadReport*> drawn;
  for (const HeadReport& head : report.heads)
    if (heads.has(head.effects.layer, head.effects.head)) drawn.push_back(&head);
  if (!chosen && drawn.size() > kMost) {
    std::ranges::stable_sort(drawn, std::greater(),
                             [](const HeadReport* h) { return h->effects.importance.raw; });
    drawn.resize(kMost);
    print_out("\nThe {} most important heads; --layer and --head choose others.", kMost);
  }
  write_picture(fmt::format("\nAttention of query (row) on key (column), mean over sequences;\n{}.\n",
                            legend(wants_colour())));
  for (const HeadReport* head : drawn) {
    const std::int64_t keys = report.keys(all[static_cast<std::size_t>(head->effects.layer)]);
    print_out("\n{}\n", head_title(report.config.model, head->effects.layer, head->effects.head));
    write_picture(heat_map(head->mean_weights, keys, wants_colour()));
  }
}

}  // namespace

void print_report(const InspectReport& report, const HeadChoice& heads) {
  const Baseline& base = report.baseline;
  print_out(
      "{} test sequences: loss {:.4f}, {:.2f} % of tokens right. Without a head (its\n"
      "output set to zero) the loss and the tokens that are right change by:\n\n",
      base.sequences, base.loss, 100 * base.accuracy);
  const auto columns = telling_columns(report);
  const HeadColumns places(report.config.model);
  const std::size_t label_width = kPlaceAndLabel - places.width() - 1;
  print_out("{} {:<{}} entropy", places.heading(), "label", label_width);
  for (const auto& column : columns) print_out(" {:>8}", column.second);
  print_out("     loss tokens % import.\n");
  for (const HeadReport& head : report.heads) {
    if (!heads.has(head.effects.layer, head.effects.head)) continue;
    const Effect& zero = head.effects.zero;
    print_out("{} {:<{}} {:>7}", places.cell(head.effects.layer, head.effects.head),
              shortened(label_text(head.label), label_width), label_width,
              number(find_score(head.scores, "entropy")));
    for (const auto& column : columns) print_out(" {:>8}", number(find_score(head.scores, column.first)));
    print_out(" {:>+8.3f} {:>+8.2f} {:>7.2f}\n", zero.loss_change, 100 * zero.accuracy_change,
              head.effects.importance.normalised);
  }
  print_out("\n");
  for (const HeadReport& head : report.heads) {
    if (!heads.has(head.effects.layer, head.effects.head)) continue;
    const std::string where = head_title(report.config.model, head.effects.layer, head.effects.head);
    print_out("{}", wrap(fmt::format("{}: {}", where, head.label.sentence), 80));
  }
  if (report.heads.size() > 1) {
    std::string curve = "accuracy with 0, 1, ... heads removed, the least important first:";
    for (const RemovalStep& step : report.cumulative_ablation)
      curve += fmt::format(" {:.2f}", 100 * step.accuracy);
    print_out("\n{}", wrap(curve, 80));
  }
  if (const std::string& warning = report.attribution.warning; !warning.empty())
    print_out("\n{}", wrap("warning: direct logit attribution: " + warning, 80));
  for (const HeadEvent& event : find_events(report.timeline.steps))
    if (heads.has(event.layer, event.head)) print_out("\n{}", wrap(sentence(event), 80));
  if (const std::string picture = draw(report.timeline.steps, !is_terminal(1)); !picture.empty())
    print_out("\n{}", picture);
  print_maps(report, heads);
}

}  // namespace thimble::cli
