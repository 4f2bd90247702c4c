#include <fmt/ranges.h>

#include <algorithm>

#include "inspect/effects/head_names.h"
#include "program/cli/text/inspect.h"
#include "program/cli/text/text_table.h"
#include "thimble/inspect/inspect.h"
#include "train/files/text/format.h"
#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

constexpr const ScoreInfo& kTaskTarget = *std::ranges::find(kScoreTable, "task_target", &ScoreInfo::name);

double strength_of(std::span<const HeadScore> scores, std::string_view name) {
  const HeadScore& score = find_score(scores, name);
  return strength(score.value, score.chance, score.attainable);
}

// Returns the `count` scores with the strongest head that can be columns, in the order of the table of scores.
std::vector<const ScoreInfo*> most_informative_columns(const InspectReport& report, std::size_t count) {
  std::vector<std::pair<double, const ScoreInfo*>> found;
  for (const ScoreInfo& score : kScoreTable) {
    double best = 0;
    for (const HeadReport& head : report.heads) best = std::max(best, strength_of(head.scores, score.name));
    if (!score.column.empty()) found.emplace_back(-best, &score);
  }
  std::ranges::sort(found);  // of equal scores, the first of the table
  found.resize(std::min(count, found.size()));
  std::vector<const ScoreInfo*> out;
  for (const auto& [best, score] : found) out.push_back(score);
  std::ranges::sort(out);
  return out;
}

std::string number(const HeadScore& score) {
  return score.eligible > 0 ? fmt::format("{:.3f}", score.value) : "-";
}

// Returns the label: in parentheses where ablation costs nothing, otherwise with a verdict other than
// important.
std::string label_text(const Label& label) {
  const std::string name = label.name.empty() ? "pattern unknown" : label.name;
  switch (label.verdict) {
    case Verdict::important:
      return label.name.empty() ? "important, pattern unknown" : label.name;
    case Verdict::harmful:
      return "harmful, " + name;
    case Verdict::minor:
      return "minor, " + name;
    case Verdict::backup:
      return "backup, " + name;
    case Verdict::redundant:
      return "(" + label.name + ")";
    case Verdict::not_enough:
      return "not enough evidence";
    case Verdict::unused:
    case Verdict::at_chance:
      break;
  }
  return "-";
}

// Returns the meanings of the columns that need one, and of a label in parentheses if there is any.
std::string table_legend(const std::vector<TextTable::Column>& columns, bool parentheses) {
  const std::pair<std::string, std::string_view> meanings[] = {
      {std::string(kTaskTarget.column), kTaskTarget.meaning},
      {own_text("Δtokens"), "token accuracy, in points"},
      {"grad.imp", "gradient importance, normalized within its layer"}};
  std::vector<std::string> parts;
  for (const auto& [title, meaning] : meanings)
    if (std::ranges::count(columns, title, &TextTable::Column::title) > 0)
      parts.push_back(fmt::format("{}: {}", title, meaning));
  if (parentheses) parts.emplace_back("(label): ablating the head costs nothing of interest");
  return fmt::format("{}", fmt::join(parts, "; "));
}

void print_table(const InspectReport& report, const HeadChoice& heads, std::size_t width) {
  // Two scores up to that width, and another one for each kScore beyond it. Where columns do not fit, weaker scores go
  // first, then grad.imp, the strongest score and entropy; then long labels get lines of their own.
  constexpr std::size_t kUsual = 89, kScore = 9;
  const std::vector<const ScoreInfo*> scores =
      most_informative_columns(report, 2 + (std::max(width, kUsual) - kUsual) / kScore);
  const ScoreInfo* strongest = most_informative_columns(report, 1)[0];
  std::vector<TextTable::Column> columns{{.title = "entropy", .rank = -1}};
  for (const ScoreInfo* score : scores)
    columns.push_back(
        {.title = std::string(score->column), .min_width = kScore, .rank = score == strongest ? -2 : -3});
  columns.push_back({.title = own_text("Δloss"), .min_width = 8});
  columns.push_back({.title = own_text("Δtokens"), .min_width = 9});
  columns.push_back({.title = "grad.imp", .rank = -2});
  const std::vector<AttentionLayer> layers = attention_layers(report.config.model);
  std::size_t name = 4;
  for (const HeadReport& head : report.heads)
    name = std::max(name, head_name(layers, head.effects.id).size());
  const auto label = [&](const std::string& head, const std::string& text) {
    return fmt::format("{:<{}} {}", head, name, text);
  };
  TextTable table(label("head", "label"), columns);
  bool parentheses = false;
  for (const HeadReport& head : report.heads) {
    if (!heads.has(head.effects.id)) continue;
    parentheses |= head.label.verdict == Verdict::redundant;
    std::vector<std::string> cells{number(find_score(head.scores, "entropy"))};
    for (const ScoreInfo* score : scores) cells.push_back(number(find_score(head.scores, score->name)));
    const bool has_effect = head.effects.zero.labels > 0;
    cells.push_back(has_effect ? fmt::format("{:+.3f}", head.effects.zero.loss_change) : "-");
    cells.push_back(has_effect ? fmt::format("{:+.2f}", 100 * head.effects.zero.accuracy.mean) : "-");
    cells.push_back(fmt::format("{:.2f}", head.effects.importance.normalized));
    table.add(label(head_name(layers, head.effects.id), label_text(head.label)), cells);
  }
  print_out("{}\n", table.text(width));
  print_paragraph("{}", table_legend(columns, parentheses));
  print_out("\n");
}

// Returns a warning for a model that is no better than chance, otherwise "".
std::string chance_text(const InspectReport& report) {
  const EffectScale& scale = report.scale;
  if (scale.at_chance == false || !scale.has_smallest() || report.baseline.labels == 0) return "";
  const bool is_known = scale.at_chance.has_value();
  const Interval& above = scale.above_chance.accuracy.interval;
  return fmt::format(
      "warning: the model is {} chance on these sequences: tokens {:.2f} %, the best constant "
      "answer {:.2f} % (95 % CI of the difference {:.2f} to {:.2f} points), untrained models {:.2f} ± {:.2f} "
      "%. {}",
      is_known ? "no better than" : "not shown to be better than", 100 * report.baseline.accuracy,
      100 * scale.chance_accuracy, 100 * above.low, 100 * above.high, 100 * scale.untrained_accuracy.mean,
      100 * scale.untrained_accuracy.sd.value_or(0),
      is_known ? "No head gets a label." : "More test sequences (--sequences, data.test) would tell.");
}

// Returns what the verdicts rest on.
std::string verdict_note(const InspectReport& report, bool details) {
  const EffectScale& scale = report.scale;
  if (report.baseline.labels == 0) return "No effects: no row has an answer.";
  if (!scale.has_smallest())
    return fmt::format("No effects of interest: a constant answer is always right on {}.",
                       counted(report.baseline.sequences, "test sequence"));
  const bool in_loss = scale.smallest_loss > 0;
  std::string text = fmt::format("Effects of interest: {:.2g} points{}", 100 * scale.smallest_accuracy,
                                 in_loss ? fmt::format(" or {:.2g} in loss", scale.smallest_loss) : "");
  if (!details) return text + "; --details has the evidence.";
  text += fmt::format("{}. Verdicts are corrected for the number of heads (Holm), intervals are not.",
                      in_loss ? fmt::format(", capped at {:.2g} nats an answer", scale.bounds.loss_cap) : "");
  if (const JointReport& joint = report.joint; !joint.pairs.empty())
    text += fmt::format(
        " Ablated together: {}, on {}{}.", counted(static_cast<std::int64_t>(joint.pairs.size()), "pair"),
        counted(joint.sequences, "sequence"),
        joint.tested == 0 ? ""
                          : fmt::format("; {}, on {}{}", counted(joint.tested, "larger group"),
                                        joint.group_sequences, joint.exact ? "" : ", not all of them"));
  return text;
}

}  // namespace

std::string kinds_text(std::span<const HeadScore> scores) {
  const double target = strength_of(scores, kTaskTarget.name);
  const bool is_strongest = std::ranges::none_of(kScoreTable, [&](const ScoreInfo& score) {
    return !score.column.empty() && strength_of(scores, score.name) > target;
  });
  std::string text;
  for (const HeadScore& score : scores)
    if (!score.kind.empty() && is_strongest && target > 0)
      text += fmt::format("{} {} {}", text.empty() ? "; target by kind:" : ",", score.kind, number(score));
  return text;
}

namespace {

// Prints the evidence of each label, and what is known of the model as a whole.
void print_details(const InspectReport& report, const HeadChoice& heads, std::size_t width) {
  print_out("\n");
  for (const HeadReport& head : report.heads) {
    if (!heads.has(head.effects.id)) continue;
    const std::string where = head_title(report.config.model, head.effects.id);
    print_paragraph("{}: {}{}", where, own_text(head.label.sentence), kinds_text(head.scores));
  }
  if (report.heads.size() > 1) {
    const auto print_curve = [&](std::string curve, const std::vector<RemovalStep>& steps) {
      for (const RemovalStep& step : steps) curve += fmt::format(" {:.2f}", 100 * step.accuracy);
      print_paragraph("{}", curve);
    };
    print_out("\n");
    print_curve("Tokens % with 0, 1, ... heads ablated, least important first:", report.cumulative_ablation);
    print_curve("Tokens % with 0, 1, ... heads ablated, the least costly at each step:", report.joint.greedy);
    if (report.scale.has_smallest())
      print_paragraph("removable heads: {} in order of gradient importance, {} greedily, {} each alone",
                      report.joint.removable_by_importance, report.joint.removable_greedily,
                      report.joint.removable_alone);
  }
  if (!report.logit_lens.empty()) {
    std::string depths = "Logit lens, tokens % of the output after ";
    for (const LensResult& lens : report.logit_lens)
      depths += fmt::format("{}{} {:.2f}", &lens == report.logit_lens.data() ? "" : ", ", lens.after,
                            100 * lens.accuracy);
    print_out("\n");
    print_paragraph("{}", depths);
  }
  if (!report.position_losses.empty()) {
    constexpr std::int64_t kEnough = 30;
    std::vector<std::string> losses;
    const std::size_t length = report.position_losses.size();
    for (std::size_t read = 1; read <= length;
         read = read < length ? std::min(2 * read, length) : length + 1) {
      const PositionLoss& at = report.position_losses[read - 1];
      if (at.labels >= kEnough)
        losses.push_back(fmt::format("{}: {:.4f} ({} labels)", read, at.loss, at.labels));
    }
    if (!losses.empty()) {
      print_out("\n");
      print_paragraph("Loss of the next token after so many tokens of its window: {}",
                      fmt::join(losses, ", "));
    }
  }
  for (const HeadEvent& event : find_events(report.timeline.steps, report.timeline.patterns))
    if (heads.has(event.id)) print_out("\n{}", wrapped(sentence(event), width));
  if (const std::string picture =
          draw(report.timeline.steps, !is_terminal(1) || !has_utf8(), width, report.timeline.patterns);
      !picture.empty())
    print_out("\n{}", picture);
}

// Prints the answers to hypotheses, with the evidence of those that are not no, or of all.
void print_hypotheses(const InspectReport& report, const HeadChoice& heads, bool details) {
  constexpr std::string_view kAnswers[] = {"yes", "no", "open"};  // by Confirmed
  const std::size_t count = report.heads.empty() ? 0 : report.heads[0].hypotheses.size();
  if (count == 0) return;
  print_out("\n");
  print_paragraph(
      "{} in this call, for {} (p after Holm's correction for all of these; earlier calls are not counted):",
      count == 1 ? "1 hypothesis" : fmt::format("{} hypotheses", count),
      counted(std::ssize(report.heads), "head"));
  const std::vector<AttentionLayer> layers = attention_layers(report.config.model);
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<std::string> none;
    for (const HeadReport& head : report.heads) {
      const HypothesisTest& test = head.hypotheses[k];
      const std::string name = head_name(layers, head.effects.id);
      if (!heads.has(head.effects.id)) continue;
      if (test.answer == Confirmed::no && !details)
        none.push_back(name);
      else
        print_paragraph("{}: {}: {}", name, kAnswers[static_cast<std::size_t>(test.answer)],
                        own_text(test.sentence));
    }
    if (!none.empty())
      print_paragraph("{}: no: {}", fmt::join(none, ", "), own_text(report.heads[0].hypotheses[k].name));
  }
}

// Prints what each head does, in a line for all of which the same is to be said. Of more than `most` lines, those of the heads
// that cost least are left out.
void print_summaries(const InspectReport& report, const HeadChoice& heads, std::size_t width,
                     std::ptrdiff_t most) {
  struct Line {
    std::string said, names;
    double cost = 0;
  };
  const std::vector<AttentionLayer> layers = attention_layers(report.config.model);
  std::vector<Line> lines;
  for (const HeadReport& head : report.heads) {
    if (!heads.has(head.effects.id) || head.label.verdict == Verdict::at_chance) continue;
    auto line = std::ranges::find(lines, head.label.summary, &Line::said);
    if (line == lines.end()) line = lines.insert(line, {head.label.summary, "", cost_of(report, head)});
    line->names += (line->names.empty() ? "" : ", ") + head_name(layers, head.effects.id);
    line->cost = std::max(line->cost, cost_of(report, head));
  }
  std::string text;
  for (const std::size_t all = lines.size();; lines.erase(std::ranges::min_element(lines, {}, &Line::cost))) {
    text = "\n";
    for (const auto& [said, names, cost] : lines)
      text += wrapped(
          fmt::format("{}{} {}", names, names.find(',') != names.npos ? " each" : "", own_text(said)), width);
    if (lines.size() < all) text += "--details has the other heads, which cost less.\n";
    if (lines.size() <= 1 || std::ranges::count(text, '\n') <= most) break;
  }
  print_out("{}", text);
}

}  // namespace

void print_report(const InspectReport& report, const HeadChoice& heads, bool details) {
  const EvalResult& base = report.baseline;
  const std::size_t width = line_width(1);
  if (const std::string chance = chance_text(report); !chance.empty())
    print_out("{}\n", wrapped(own_text(chance), width));
  print_paragraph(
      "{}: {}", sample_text(report.config, report.scale.above_chance, report.hypotheses),
      base.labels == 0
          ? "no row has an answer, so scores alone:"
          : fmt::format(
                "loss {:.4f}, tokens {:.2f} %. Change in loss and accuracy when a head is zero-ablated:",
                base.loss, 100 * base.accuracy));
  print_out("\n");
  print_table(report, heads, width);
  print_paragraph("{}", verdict_note(report, details));
  if (const std::string& warning = report.attribution.warning; !warning.empty())
    print_out("\n{}", wrapped("warning: direct logit attribution: " + warning, width));
  const std::ptrdiff_t map_lines = print_maps(report, heads, width);
  print_hypotheses(report, heads, details);
  // What twelve heads leave of 60 lines in a usual terminal; narrower ones have no limit.
  constexpr std::ptrdiff_t kMax = 43, kMin = 7;
  const bool is_limited = width >= 80 && !heads.some();
  const std::ptrdiff_t room = kMax - std::ssize(report.heads) - map_lines;
  details ? print_details(report, heads, width)
          : print_summaries(report, heads, width, is_limited ? std::max(room, kMin) : 1000);
}

}  // namespace thimble::cli
