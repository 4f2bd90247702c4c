#include "program/cli/text/compare_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "inspect/effects/head_names.h"
#include "program/cli/text/result_columns.h"
#include "program/cli/text/text_table.h"
#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

constexpr std::size_t kIndent = 2, kMinLabel = 12, kMaxLabel = 30;

const ComparedResult* find(const Comparison& comparison, std::string_view metric) {
  const auto found = std::ranges::find(comparison.results, metric, &ComparedResult::metric);
  return found == comparison.results.end() ? nullptr : &*found;
}

std::size_t label_width(const Comparison& comparison, std::size_t width) {
  std::size_t longest = kMinLabel;
  for (const ComparedRun& run : comparison.runs) longest = std::max(longest, display_width(run.name));
  return std::min({longest, kMaxLabel, width / 3});
}

std::string results_text(const Comparison& comparison, std::size_t width) {
  std::vector<TextTable::Column> columns;
  std::vector<std::pair<const ResultColumn*, const ComparedResult*>> results;
  for (const ResultColumn& column : kResultColumns) {
    const ComparedResult* result = find(comparison, column.metric);
    if (result == nullptr) continue;
    columns.push_back(  // with a space for the star
        {.title = fmt::format("{} ", column.title), .min_width = column.width, .rank = column.rank});
    results.emplace_back(&column, result);
  }
  TextTable table("run", columns);
  bool has_range = false, has_best = false;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const ComparedRun& run = comparison.runs[i];
    const bool is_range = run.directories.size() > 1;
    has_range |= is_range;
    for (const auto& [title, value] :
         {std::pair(run.name.c_str(), &Spread::median), {"  min", &Spread::min}, {"  max", &Spread::max}}) {
      std::vector<std::string> cells;
      for (const auto& [column, result] : results) {
        const Spread& values = result->runs[i];
        const bool is_best = result->is_best[i] && value == &Spread::median;
        cells.push_back(column->text(values.count > 0, values.*value) + (is_best ? "*" : " "));
        has_best |= is_best;
      }
      table.add(title, cells);
      if (!is_range) break;
    }
    if (const ComparedResult* step = find(comparison, "/result_step"); step && step->runs[i].count > 0) {
      const auto& [count, low, high] = std::tie(step->runs[i].count, step->runs[i].min, step->runs[i].max);
      table.add_text(
          fmt::format("  results of step{}, the best{}{}",
                      low < high ? fmt::format("s {:.0f} to {:.0f}", low, high) : fmt::format(" {:.0f}", low),
                      count < std::ssize(run.directories) ? fmt::format(" of {} runs", count) : "",
                      is_range ? "" : "; the train loss is of the last"));
    }
    if (run.failed > 0)
      table.add_text(fmt::format("  {} of {} runs without a result", run.failed,
                                 run.failed + std::ssize(run.directories)));
  }
  std::string note = has_best ? "*: the best. " : "";
  note += has_range ? "The first row of a setting is the median over its seeds. " : "";
  note += find(comparison, "/test/accuracy") != nullptr ? "Accuracies are those of the test split." : "";
  return table.text(width) + (note.empty() ? "" : wrapped(note, width));
}

// Returns the value of a curve in each column of a common step axis; NaN where it has no point.
std::vector<double> sampled(const std::vector<CurveSpread>& curve, std::int64_t last, std::size_t columns) {
  std::vector<double> values(columns, std::nan(""));
  for (const CurveSpread& point : curve) {
    const auto column = static_cast<std::size_t>(static_cast<double>(point.step) / static_cast<double>(last) *
                                                 static_cast<double>(columns - 1));
    values[column] = point.values.median;
  }
  // A column between two points of the curve shows the earlier one.
  const auto end = std::ranges::find_if(values.rbegin(), values.rend(), [](double x) { return x == x; });
  double before = std::nan("");
  for (auto value = values.begin(); value != end.base(); ++value)
    before = *value = *value == *value ? *value : before;
  return values;
}

// Returns a curve for each run, all on the same axes.
std::string curve_text(const Comparison& comparison, const ComparedCurve& curve, bool plain,
                       std::size_t width) {
  std::int64_t last = 1;
  double highest = 0;
  for (const std::vector<CurveSpread>& run : curve.runs)
    for (const CurveSpread& point : run) {
      last = std::max(last, point.step);
      highest = std::max(highest, point.values.median);
    }
  const bool is_share = curve.metric == "accuracy";
  if (is_share) highest = 1;
  const auto number = [&](double x) {
    return is_share ? fmt::format("{:.1f} %", 100 * x) : fmt::format("{:.4f}", x);
  };
  const std::size_t label = label_width(comparison, width);
  constexpr std::size_t kNumber = 9;
  const std::size_t columns = width - label - 1 - kNumber;
  std::string out = wrapped(fmt::format("{} {}: heights from 0 to {}, steps from 0 to {}", curve.split,
                                        curve.metric, number(highest), last),
                            width, kIndent);
  for (std::size_t i = 0; i < curve.runs.size(); ++i) {
    if (curve.runs[i].empty()) continue;
    out += fmt::format("{} {}{:>{}}\n", padded_right(truncated(comparison.runs[i].name, label), label),
                       bars(sampled(curve.runs[i], last, columns), highest, plain),
                       number(curve.runs[i].back().values.median), kNumber);
  }
  return out;
}

// Returns the values that differ, or all of them, with as many runs beside each other as fit.
std::string values_text(const Comparison& comparison, bool all, std::size_t width) {
  std::vector<ComparedValue> rows = comparison.config;
  rows.insert(rows.end(), comparison.records.begin(), comparison.records.end());
  if (!all) std::erase_if(rows, [](const ComparedValue& row) { return !row.differs; });
  if (rows.empty()) return "The configs are the same.\n";
  constexpr std::size_t kMinColumn = 14, kMaxColumn = 34;
  std::size_t key_width = 6, longest = 0;
  for (const ComparedValue& row : rows) {
    key_width = std::max(key_width, display_width(row.key));
    for (const std::string& value : row.values) longest = std::max(longest, display_width(value));
  }
  for (const ComparedRun& run : comparison.runs) longest = std::max(longest, display_width(run.name));
  key_width = std::min(key_width, width / 2);
  const std::size_t wanted = std::clamp(longest + 2, kMinColumn, kMaxColumn);
  const std::size_t runs = comparison.runs.size();
  const std::size_t fit = std::clamp<std::size_t>((width - key_width) / wanted, 1, runs);
  const std::size_t column =
      std::min({kMaxColumn + 30, fit == runs ? (width - key_width) / fit : wanted, width - key_width});
  const auto cell = [&](const std::string& text) {  // with a second space between columns
    return ' ' + truncated(text.empty() ? "-" : text, column - 2);
  };
  std::string out;
  for (std::size_t first = 0; first < runs; first += fit) {
    const std::size_t end = std::min(first + fit, runs);
    std::vector<TextTable::Column> columns;
    for (std::size_t i = first; i < end; ++i)
      columns.push_back({.title = cell(comparison.runs[i].name), .min_width = column, .is_left = true});
    TextTable table("config", columns);
    for (const ComparedValue& row : rows) {
      std::vector<std::string> cells;
      for (std::size_t i = first; i < end; ++i) cells.push_back(cell(row.values[i]));
      table.add(truncated(row.key, key_width), cells);
    }
    out += (first > 0 ? "\n" : "") + table.text(width);
  }
  return out;
}

std::string head_text(const ModelConfig& model, HeadId id) { return head_name(attention_layers(model), id); }

std::string number_text(double x) { return std::isnan(x) ? "-" : fmt::format("{:.3f}", x); }

std::string heads_text(const Comparison& comparison, const ComparedHeads& compared, std::size_t width) {
  const HeadComparison& heads = compared.heads;
  const std::string &first = comparison.runs[0].name, &second = comparison.runs[compared.run].name;
  if (!heads.obstacle.empty())
    return wrapped(fmt::format("Heads of {} and {} are not compared: {}.", first, second, heads.obstacle),
                   width);
  const ModelConfig &model = comparison.models[0], &other = comparison.models[compared.run];
  constexpr std::size_t kNumbers = 3 * 10;
  const std::size_t title =
      std::clamp<std::size_t>((width - std::min(width, kNumbers + 1)) / 2, 8, kMaxLabel);
  TextTable table(truncated(first, title), {{.title = truncated(second, title), .rank = 1, .is_left = true},
                                            {.title = "overlap", .min_width = 10},
                                            {.title = "chance", .min_width = 10},
                                            {.title = "elsewhere", .min_width = 10}});
  const std::string heading = wrapped(
      fmt::format(
          "Heads of {} and {}, matched by overlap, the attention that two heads share on the same {} test sequences (1 - total-variation distance):",
          first, second, heads.sequences),
      width);
  double sum = 0, chance = 0, count = 0;
  for (const HeadMatch& match : heads.matches) {
    table.add(head_text(model, match.head),
              {match.match ? head_text(other, *match.match) : "no match", number_text(match.overlap),
               number_text(match.chance), number_text(match.elsewhere)});
    if (!match.match) continue;
    sum += match.overlap;
    chance += match.chance;
    ++count;
  }
  for (const HeadId id : heads.unmatched) table.add("no match", {head_text(other, id)});
  if (count > 0) table.add("mean", {"", number_text(sum / count), number_text(chance / count)});
  return heading + table.text(width);
}

constexpr std::string_view kHeadLegend =
    "chance: the overlap that a match must exceed; in 5 % of comparisons with an untrained model, a head does. elsewhere: "
    "the overlap of the pair on two different sequences, which follows from positions alone.";

}  // namespace

std::string compare_text(const Comparison& comparison, bool all, bool plain, std::size_t width) {
  std::string out = results_text(comparison, width);
  if (!comparison.data_differs.empty())
    out += wrapped(
        fmt::format(
            "warning: the runs differ in their data ({}): their results are not on the same sequences.",
            fmt::join(comparison.data_differs, ", ")),
        width);
  for (const ComparedCurve& curve : comparison.curves)
    if (std::ranges::any_of(curve.runs, [](const auto& run) { return run.size() > 1; }))
      out += "\n" + curve_text(comparison, curve, plain, width);
  out += "\n" + values_text(comparison, all, width);
  bool has_heads = false;
  for (const ComparedHeads& heads : comparison.heads) {
    out += "\n" + heads_text(comparison, heads, width);
    has_heads |= heads.heads.obstacle.empty();
  }
  return out + (has_heads ? wrapped(kHeadLegend, width) : "");
}

}  // namespace thimble::cli
