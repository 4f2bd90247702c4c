#include "program/reproduce/markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "program/reproduce/measure.h"
#include "thimble/train/statistics.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

std::string_view kind_of(const ExperimentResult& result) {
  return kExperimentKinds[static_cast<std::size_t>(result.experiment.kind)];
}

// Returns the text on one line, with a backslash before what Markdown would format or take for HTML.
std::string escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "\\`*[]<|&";
  std::string out;
  for (const char c : escape_controls(text)) {
    if (kSpecial.find(c) != kSpecial.npos) out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string heading(const std::vector<std::string>& cells) {
  return row(cells) + row(std::vector<std::string>(cells.size(), "---"));
}

std::string numbers_table(const ExperimentResult& result) {
  const Experiment& experiment = result.experiment;
  std::vector<std::string> names{"value"};
  for (const std::uint64_t seed : experiment.seeds) names.push_back(fmt::format("seed {}", seed));
  names.insert(names.end(), {"min", "median", "max"});
  std::string out = heading(names);
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    std::vector<std::string> cells{escaped(experiment.values[i].name)};
    const Spread all = spread(result.values[i]);
    for (const double x : result.values[i]) cells.push_back(format_number(x, 6));
    for (const double x : {all.min, all.median, all.max}) cells.push_back(format_number(x, 6));
    out += row(cells);
  }
  for (std::size_t i = 0; i < result.conditions.size(); ++i) {
    std::vector<std::string> cells{escaped(describe(experiment.conditions[i]))};
    for (const bool holds : result.conditions[i]) cells.push_back(holds ? "holds" : "does not hold");
    cells.resize(names.size());
    out += row(cells);
  }
  return out;
}

std::string section(const ExperimentResult& result) {
  const Experiment& experiment = result.experiment;
  std::string out = fmt::format("\n## {}: {}\n\n{}\n\n{}: {}\n\n{}\n", escaped(experiment.name),
                                name(result.verdict), escaped(experiment.statement), kind_of(result),
                                escaped(experiment.source), numbers_table(result));
  for (const ExperimentRun& run : experiment.runs)
    out += fmt::format("- {}: {} {}\n", escaped(run.name), escaped(run.setting.file),
                       escaped(fmt::format("{}", fmt::join(run.setting.overrides, " "))));
  for (const std::string& problem : result.problems)
    out += fmt::format("- **problem**: {}\n", escaped(problem));
  return out;
}

}  // namespace

std::string to_markdown(std::span<const ExperimentResult> results) {
  std::string out =
      "# Results of thimble reproduce\n\nPASS: every condition holds on every seed. FAIL: some condition holds on none. NOT SHOWN: neither, or a value could not be measured.\n\n";
  out += heading({"experiment", "kind", "verdict", "seconds"});
  for (const ExperimentResult& result : results)
    out += row({escaped(result.experiment.name), std::string(kind_of(result)),
                std::string(name(result.verdict)), fmt::format("{:.0f}", result.seconds)});
  for (const ExperimentResult& result : results) out += section(result);
  return out;
}

}  // namespace thimble
