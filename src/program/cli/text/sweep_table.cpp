#include "program/cli/text/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

constexpr std::size_t kLabel = 18, kSeeds = 6;

std::string key_of(const std::string& text) { return text.substr(0, text.find('=')); }
std::string leaf_of(const std::string& key) { return key.substr(key.rfind('.') + 1); }

struct SweepColumn {
  std::string_view title, metric;
  double factor;
  std::size_t width;
  int decimals;
};
constexpr SweepColumn kSweepColumns[] = {
    {"val. loss", "/validation/loss", 1, 10, 5},
    {"test loss", "/test/loss", 1, 10, 5},
    {"tokens %", "/test/accuracy", 100, 9, 2},
    {"sequences %", "/test/sequence_accuracy", 100, 12, 2},
    {"steps", "/steps", 1, 8, 0},
    {"s", "/seconds", 1, 7, 1},
};

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
  std::size_t longest = 0, numbers = kSeeds;
  for (const std::string& label : labels) longest = std::max(longest, display_width(label));
  for (const SweepColumn& column : kSweepColumns) numbers += column.width;
  // Where labels and columns do not fit, labels get lines of their own; then columns are left out from the
  // right.
  constexpr std::size_t kIndent = 2;
  const std::size_t label_width =
      width < kLabel + numbers ? kIndent : std::clamp(longest, kLabel, width - numbers);
  std::span<const SweepColumn> columns = kSweepColumns;
  for (; label_width + numbers > width; columns = columns.first(columns.size() - 1))
    numbers -= columns.back().width;

  std::string out = padded_right(label_width > kIndent ? "setting" : "", label_width) + " seeds";
  for (const SweepColumn& column : columns) out += fmt::format("{:>{}}", column.title, column.width);
  out += '\n';
  const std::size_t seeds = runs.size() / sweep.settings.size();
  for (const std::size_t i : row_order(sweep, runs)) {
    const bool fits = display_width(labels[i]) <= label_width;
    if (!fits) out += wrapped(labels[i], width, kIndent);
    const auto done = metric_spread(runs, i, "/steps").count;
    std::string means = padded_right(fits ? labels[i] : "", label_width) +
                        fmt::format(" {:>5}", fmt::format("{}/{}", done, seeds));
    std::string deviations = fmt::format("{:<{}} {:>5}", "", label_width, "+-");
    for (const SweepColumn& column : columns) {
      const Spread values = metric_spread(runs, i, column.metric);
      const auto cell = [&](bool known, double value) {
        return known ? fmt::format("{:>{}.{}f}", column.factor * value, column.width, column.decimals)
                     : fmt::format("{:>{}}", "-", column.width);
      };
      means += cell(values.count > 0, values.mean);
      deviations += cell(values.sd.has_value(), values.sd.value_or(0));
    }
    out += means + '\n';
    if (seeds > 1) out += deviations + '\n';
    for (const SweepRun& run : runs)
      if (run.setting == i && run.status != RunStatus::done)
        out += wrapped(fmt::format("  seed {}: {}{}{}", run.config.train.seed, name(run.status),
                                   run.error.empty() ? "" : ": ", run.error),
                       width, 4);
  }
  return out;
}

}  // namespace thimble::cli
