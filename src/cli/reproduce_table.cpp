#include "cli/reproduce_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "thimble/reproduce/measure.h"

namespace thimble::cli {

namespace {

constexpr std::size_t kWidth = 80, kLabel = 38;

// The text in lines of at most kWidth, broken at spaces where there are any, each indented.
std::string wrapped(std::string text, std::size_t indent) {
  std::string out;
  const std::string margin(indent, ' ');
  const std::size_t width = kWidth - indent;
  while (text.size() > width) {
    std::size_t end = text.rfind(' ', width);
    if (end == std::string::npos || end == 0) end = width;
    out += margin + text.substr(0, end) + '\n';
    text.erase(0, text[end] == ' ' ? end + 1 : end);
  }
  return out + margin + text + '\n';
}

std::string row(const std::string& label, const std::string& seeds, const std::vector<double>& numbers) {
  const Range all = range(numbers);
  const bool fits = label.size() <= kLabel;
  return (fits ? "" : wrapped(label, 2)) + fmt::format("  {:<{}} {:>5} {:>10} {:>10} {:>10}\n",
                                                       fits ? label : "", kLabel, seeds, figure(all.min),
                                                       figure(all.median), figure(all.max));
}

std::string experiment_rows(const ExperimentResult& result) {
  const Experiment& experiment = result.experiment;
  const auto kind = kExperimentKinds[static_cast<std::size_t>(experiment.kind)];
  std::string out = fmt::format("{:<40} {:<8} {:<9} {:>17.0f} s\n", experiment.name, kind,
                                name(result.verdict), result.seconds);
  const auto number = [&](const std::string& value) {
    return static_cast<std::size_t>(std::ranges::find(experiment.values, value, &ExperimentValue::name) -
                                    experiment.values.begin());
  };
  std::vector<bool> shown(experiment.values.size());
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    const std::size_t value = number(experiment.conditions[i].value);
    shown[value] = true;
    const std::vector<bool>& seeds = result.conditions[i];
    out += row(describe(experiment.conditions[i]),
               fmt::format("{}/{}", std::ranges::count(seeds, true), seeds.size()), result.values[value]);
  }
  for (std::size_t i = 0; i < result.values.size(); ++i)
    if (!shown[i]) out += row(experiment.values[i].name, "", result.values[i]);
  for (const std::string& problem : result.problems) out += wrapped(problem, 2);
  return out;
}

}  // namespace

std::string figure(double x) {
  constexpr double kLargest = 1e8;
  if (std::isinf(x) || std::isnan(x)) return std::isinf(x) ? "never" : "-";
  return x == std::round(x) && std::abs(x) < kLargest ? fmt::format("{:.0f}", x) : fmt::format("{:.4g}", x);
}

std::string experiments_table(std::span<const ExperimentResult> results) {
  std::string out = fmt::format("{:<{}} {:>5} {:>10} {:>10} {:>10}\n", "experiment", kLabel + 2, "seeds",
                                "least", "median", "most");
  for (const ExperimentResult& result : results) out += experiment_rows(result);
  return out;
}

std::string experiments_list(std::span<const Experiment> experiments) {
  std::string out;
  for (const Experiment& experiment : experiments)
    out += fmt::format("{}, {}{}\n", experiment.name,
                       kExperimentKinds[static_cast<std::size_t>(experiment.kind)],
                       experiment.quick ? ", quick" : "") +
           wrapped(experiment.statement, 2);
  return out;
}

}  // namespace thimble::cli
