#include "program/cli/text/reproduce_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "program/reproduce/measure.h"
#include "thimble/train/statistics.h"
#include "train/files/text/format.h"
#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

constexpr std::size_t kNumbers = 38;  // width of the numbers of a row

std::string indented(const std::string& text, std::size_t width) { return wrapped("  " + text, width, 2); }

// Returns a row with the label beside the numbers, or on lines of its own.
std::string row(const std::string& label, const std::string& seeds, const std::vector<double>& numbers,
                std::size_t width) {
  const Spread all = spread(numbers);
  const std::size_t room = width - kNumbers - 2;
  const bool fits = display_width(label) + 1 <= room;
  return (fits ? "" : indented(label, width)) + "  " + padded_right(fits ? label : "", room) +
         fmt::format("{:>5} {:>10} {:>10} {:>10}\n", seeds, format_number(all.min), format_number(all.median),
                     format_number(all.max));
}

std::string experiment_rows(const ExperimentResult& result, std::size_t width) {
  const Experiment& experiment = result.experiment;
  const auto kind = kExperimentKinds[static_cast<std::size_t>(experiment.kind)];
  const std::string facts = fmt::format("{:<8} {:<9} {:>6.0f} s", kind, name(result.verdict), result.seconds);
  const bool fits = display_width(experiment.name) + 1 + facts.size() <= width;
  std::string out = fits ? padded_right(experiment.name, width - 1 - facts.size()) + ' ' + facts + '\n'
                         : wrapped(experiment.name, width) + "  " + facts + '\n';
  const auto number = [&](const std::string& value) {
    return static_cast<std::size_t>(std::ranges::find(experiment.values, value, &ExperimentValue::name) -
                                    experiment.values.begin());
  };
  std::vector<bool> shown(experiment.values.size());
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    const std::size_t value = number(experiment.conditions[i].value);
    shown[value] = true;
    const std::vector<bool>& seeds = result.conditions[i];
    out +=
        row(describe(experiment.conditions[i]),
            fmt::format("{}/{}", std::ranges::count(seeds, true), seeds.size()), result.values[value], width);
  }
  for (std::size_t i = 0; i < result.values.size(); ++i)
    if (!shown[i]) out += row(experiment.values[i].name, "", result.values[i], width);
  for (const std::string& problem : result.problems) out += indented(problem, width);
  return out;
}

}  // namespace

std::string experiments_table(std::span<const ExperimentResult> results, std::size_t width) {
  constexpr std::size_t kMaxWidth = 80;
  width = std::min(width, kMaxWidth);
  const std::size_t room = width - kNumbers;
  std::string out = padded_right(truncated("experiment", room), room) +
                    fmt::format("{:>5} {:>10} {:>10} {:>10}\n", "seeds", "min", "median", "max");
  for (const ExperimentResult& result : results) out += experiment_rows(result, width);
  return out;
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
