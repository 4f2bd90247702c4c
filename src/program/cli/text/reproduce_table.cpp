#include "program/cli/text/reproduce_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/cli/text/text_table.h"
#include "program/reproduce/measure.h"
#include "thimble/train/statistics.h"
#include "train/files/text/format.h"
#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

std::string indented(const std::string& text, std::size_t width) { return wrapped("  " + text, width, 2); }

void add_row(TextTable& table, const std::string& label, const std::string& seeds,
             const std::vector<double>& numbers) {
  const Spread all = spread(numbers);
  table.add("  " + label, {seeds, format_number(all.min), format_number(all.median), format_number(all.max)});
}

void add_experiment(TextTable& table, const ExperimentResult& result) {
  const Experiment& experiment = result.experiment;
  const auto kind = kExperimentKinds[static_cast<std::size_t>(experiment.kind)];
  table.add_text(
      fmt::format("{}  {}, {}, {:.0f} s", experiment.name, kind, name(result.verdict), result.seconds));
  const auto number = [&](const std::string& value) {
    return static_cast<std::size_t>(std::ranges::find(experiment.values, value, &ExperimentValue::name) -
                                    experiment.values.begin());
  };
  std::vector<bool> shown(experiment.values.size());
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    const std::size_t value = number(experiment.conditions[i].value);
    shown[value] = true;
    const std::vector<bool>& seeds = result.conditions[i];
    add_row(table, describe(experiment.conditions[i]),
            fmt::format("{}/{}", std::ranges::count(seeds, true), seeds.size()), result.values[value]);
  }
  for (std::size_t i = 0; i < result.values.size(); ++i)
    if (!shown[i]) add_row(table, experiment.values[i].name, "", result.values[i]);
  for (const std::string& problem : result.problems) table.add_text("  " + problem);
}

}  // namespace

std::string experiments_table(std::span<const ExperimentResult> results, std::size_t width) {
  constexpr std::size_t kMaxWidth = 80;
  TextTable table("experiment", {{.title = "seeds"},
                                 {.title = "min", .min_width = 11},
                                 {.title = "median", .min_width = 11},
                                 {.title = "max", .min_width = 11}});
  for (const ExperimentResult& result : results) add_experiment(table, result);
  return table.text(std::min(width, kMaxWidth));
}

std::string experiments_list(std::span<const Experiment> experiments, std::size_t width) {
  std::string out;
  for (const Experiment& experiment : experiments)
    out += wrapped(fmt::format("{}, {}{}", experiment.name,
                               kExperimentKinds[static_cast<std::size_t>(experiment.kind)],
                               experiment.quick ? ", quick" : ""),
                   width) +
           indented(experiment.statement, width) +
           (experiment.data.empty() ? "" : indented("requires --data FILE: " + experiment.data, width));
  return out;
}

}  // namespace thimble::cli
