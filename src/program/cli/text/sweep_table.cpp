#include "program/cli/text/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "program/cli/text/result_columns.h"
#include "program/cli/text/text_table.h"

namespace thimble::cli {

namespace {

std::string key_of(const std::string& text) { return text.substr(0, text.find('=')); }
std::string leaf_of(const std::string& key) { return key.substr(key.rfind('.') + 1); }

// Returns the settings from the best to the worst where halving has compared them: by the stage that they reached, then
// by their mean validation loss. Else in the order of the sweep.
std::vector<std::size_t> row_order(const Sweep& sweep, const std::vector<SweepRun>& runs) {
  std::vector<std::size_t> order(sweep.settings.size());
  std::iota(order.begin(), order.end(), 0);
  if (sweep.halving.steps.empty()) return order;
  std::vector<std::pair<std::int64_t, double>> ranks(order.size());  // minus the stages, and the loss
  for (const std::size_t i : order) {
    const Spread finished = metric_spread(runs, i, "/validation/loss");
    std::vector<double> losses;
    for (const SweepRun& run : runs) {
      if (run.setting != i) continue;
      ranks[i].first = std::min(ranks[i].first, -std::ssize(run.losses) - (finished.count > 0 ? 1 : 0));
      if (!run.losses.empty()) losses.push_back(run.losses.back());
    }
    ranks[i].second = finished.count > 0 ? finished.mean : spread(losses).mean;
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return ranks[i]; });
  return order;
}

}  // namespace

std::vector<std::string> setting_labels(const Sweep& sweep) {
  std::map<std::string, std::size_t> uses;             // settings by override
  std::map<std::string, std::set<std::string>> paths;  // by last name
  for (const SweepSetting& setting : sweep.settings)
    for (const std::string& text : setting.overrides) {
      ++uses[text];
      paths[leaf_of(key_of(text))].insert(key_of(text));
    }
  std::vector<std::string> labels;
  for (const SweepSetting& setting : sweep.settings) {
    std::string& label = labels.emplace_back();
    for (const std::string& text : setting.overrides) {
      if (uses[text] == sweep.settings.size()) continue;
      const std::string key = key_of(text), leaf = leaf_of(key);
      if (!label.empty()) label += ' ';
      label += (paths[leaf].size() == 1 ? leaf : key) + text.substr(key.size());
    }
    if (label.empty()) label = "(the config)";
  }
  return labels;
}

std::string sweep_table(const Sweep& sweep, const std::vector<SweepRun>& runs, std::size_t width) {
  const std::vector<std::string> labels = setting_labels(sweep);
  const auto shown = std::span(kResultColumns).first(std::size(kResultColumns) - 1);  // but the training loss
  std::vector<TextTable::Column> columns{{.title = "seeds"}};
  for (const ResultColumn& column : shown)
    columns.push_back({.title = std::string(column.title), .least = column.width - 1});
  TextTable table("setting", columns);
  const std::size_t seeds = runs.size() / sweep.settings.size();
  for (const std::size_t i : row_order(sweep, runs)) {
    std::vector<std::string> means{fmt::format("{}/{}", metric_spread(runs, i, "/steps").count, seeds)};
    std::vector<std::string> deviations{"+-"};
    for (const ResultColumn& column : shown) {
      const Spread values = metric_spread(runs, i, column.metric);
      means.push_back(column.text(values.count > 0, values.mean));
      deviations.push_back(column.text(values.sd.has_value(), values.sd.value_or(0)));
    }
    table.add(labels[i], means);
    if (seeds > 1) table.add("", deviations);
    for (const SweepRun& run : runs)
      if (run.setting == i && run.status != RunStatus::done)
        table.add_text(fmt::format("  seed {}: {}{}{}", run.config.train.seed, name(run.status),
                                   run.error.empty() ? "" : ": ", run.error));
  }
  return table.text(width);
}

}  // namespace thimble::cli
