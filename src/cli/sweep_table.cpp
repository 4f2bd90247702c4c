#include "cli/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace thimble::cli {

namespace {

constexpr std::size_t kWidth = 80, kLabel = 21;

std::string key_of(const std::string& text) { return text.substr(0, text.find('=')); }
std::string leaf_of(const std::string& key) { return key.substr(key.rfind('.') + 1); }

// The text in lines of at most kWidth, broken at spaces where there are any; all but the first are indented.
std::string wrap(std::string text, std::size_t indent) {
  std::string out;
  while (text.size() > kWidth) {
    std::size_t end = text.rfind(' ', kWidth);
    if (end == std::string::npos || end <= indent) end = kWidth;
    out += text.substr(0, end) + '\n';
    text = std::string(indent, ' ') + text.substr(text[end] == ' ' ? end + 1 : end);
  }
  return out + text + '\n';
}

struct Column {
  std::string_view title, metric;
  double factor;
  std::size_t width;
  int decimals;
};
constexpr Column kColumns[] = {
    {"val. loss", "/validation/loss", 1, 10, 5},
    {"test loss", "/test/loss", 1, 10, 5},
    {"tokens %", "/test/accuracy", 100, 9, 2},
    {"seqs. %", "/test/sequence_accuracy", 100, 8, 2},
    {"steps", "/steps", 1, 8, 0},
    {"s", "/seconds", 1, 7, 1},
};

}  // namespace

std::vector<std::string> setting_labels(const Sweep& sweep) {
  std::map<std::string, std::size_t> uses;             // of each override, in all settings
  std::map<std::string, std::set<std::string>> paths;  // by their last name
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

std::string sweep_table(const Sweep& sweep, const std::vector<SweepRun>& runs) {
  std::string out = fmt::format("{:<{}} {:>5}", "setting", kLabel, "seeds");
  for (const Column& column : kColumns) out += fmt::format("{:>{}}", column.title, column.width);
  out += '\n';
  const std::vector<std::string> labels = setting_labels(sweep);
  const std::size_t seeds = runs.size() / sweep.settings.size();
  for (std::size_t i = 0; i < sweep.settings.size(); ++i) {
    const bool fits = labels[i].size() <= kLabel;
    if (!fits) out += wrap(labels[i], 2);
    const auto done = metric_spread(runs, i, "/steps").count;
    std::string means =
        fmt::format("{:<{}} {:>5}", fits ? labels[i] : "", kLabel, fmt::format("{}/{}", done, seeds));
    std::string deviations = fmt::format("{:<{}} {:>5}", "", kLabel, "+-");
    for (const Column& column : kColumns) {
      const Spread values = metric_spread(runs, i, column.metric);
      const auto cell = [&](bool known, double value) {
        return known ? fmt::format("{:>{}.{}f}", column.factor * value, column.width, column.decimals)
                     : fmt::format("{:>{}}", "-", column.width);
      };
      means += cell(values.count > 0, values.mean);
      deviations += cell(values.sd.has_value(), values.sd.value_or(0));
    }
    out += means + '\n' + deviations + '\n';
    for (const SweepRun& run : runs)
      if (run.setting == i && run.status != RunStatus::done)
        out += wrap(fmt::format("  seed {}: {}{}{}", run.config.train.seed, name(run.status),
                                run.error.empty() ? "" : ": ", run.error),
                    4);
  }
  return out;
}

}  // namespace thimble::cli
