#include "program/cli/text/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "program/cli/text/result_columns.h"
#include "program/cli/text/text_table.h"

namespace thimble::cli {

namespace {

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

std::string sweep_table(const Sweep& sweep, const std::vector<SweepRun>& runs, std::size_t width) {
  const std::vector<std::string> labels = setting_labels(sweep);
  const auto shown = std::span(kResultColumns).first(std::size(kResultColumns) - 1);  // but the training loss
  std::vector<TextTable::Column> columns{{.title = "seeds"}};
  for (const ResultColumn& column : shown)
    columns.push_back({.title = std::string(column.title), .min_width = column.width - 1});
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
