#include "thimble/sweep/sweep.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "thimble/config/changes.h"
#include "thimble/config/yaml.h"

namespace thimble {
namespace {

using config::Change;
using config::Changes;
using config::Report;
using config::YamlNode;

// A reader of a sweep file and of the config of every setting.
class SweepReader {
 public:
  SweepReader(Sweep& sweep, Report& report) : sweep_(sweep), report_(report), changes_(report) {}

  void read(const YamlNode& root) {
    static constexpr std::string_view kKeys[] = {"config", "grid", "list", "seeds"};
    if (!root.is_map())
      return must_be(root, "", fmt::format("a map with {}", fmt::join(kKeys, ", ")), report_);
    bool has_config = false;
    for_entries(root, "", report_, [&](const YamlNode& key, const YamlNode& value) {
      if (key.text == "config") {
        has_config = true;
        config_location_ = value.location;
        sweep_.config = changes_.read_config(value);
      } else if (key.text == "grid") {
        read_grid(value);
      } else if (key.text == "list") {
        read_list(value);
      } else if (key.text == "seeds") {
        changes_.read_seeds(value, sweep_.seeds);
      } else {
        unknown_key(key, kKeys, report_);
      }
    });
    if (!has_config)
      report_.problem(report_.start_of_file(), "config",
                      "missing key; set it to the config file to start from");
    read_common();
    check_keys();
  }

  void load_settings() {
    std::size_t points = 1;
    double runs = static_cast<double>(std::max<std::size_t>(1, list_.size()) *
                                      std::max<std::size_t>(1, sweep_.seeds.size()));
    for (const Changes& values : grid_) runs *= static_cast<double>(values.size());
    if (runs > kMaxSweepRuns)
      return report_.problem(report_.start_of_file(), "",
                             fmt::format("{:.0f} runs; a sweep has at most {}", runs, kMaxSweepRuns));
    if (sweep_.config.empty()) return;
    if (list_.empty()) list_.emplace_back();
    for (const Changes& values : grid_) points *= values.size();
    for (const Changes& entry : list_)
      for (std::size_t point = 0; point < points; ++point) load(entry, point);
  }

 private:
  void read_grid(const YamlNode& node) {
    if (!node.is_filled(YamlNode::Kind::map))
      return must_be(node, "grid", "a map from keys to lists of values", report_);
    for_entries(node, "", report_, [&](const YamlNode& key, const YamlNode& values) {
      if (!values.is_filled(YamlNode::Kind::list))
        return must_be(values, key.text, "a list of values", report_);
      Changes& changes = grid_.emplace_back();
      for (const YamlNode& value : values.values) changes_.read_change(key, value, changes);
      if (changes.empty()) grid_.pop_back();
    });
  }

  void read_list(const YamlNode& node) {
    constexpr std::string_view kRule = "a list of settings, each a map from keys to values";
    if (!node.is_filled(YamlNode::Kind::list)) return must_be(node, "list", kRule, report_);
    for (const YamlNode& entry : node.values) {
      if (!entry.is_filled(YamlNode::Kind::map)) {
        must_be(entry, "list", kRule, report_);
        continue;
      }
      Changes& changes = list_.emplace_back();
      for_entries(entry, "", report_, [&](const YamlNode& key, const YamlNode& value) {
        changes_.read_change(key, value, changes);
      });
      if (changes.empty()) list_.pop_back();
    }
  }

  // Reads the changes of the command line.
  void read_common() {
    int number = 0;
    for (const std::string& text : sweep_.overrides) {
      const SourceLocation location{.source = text, .argument = ++number};
      common_.push_back({text.substr(0, text.find('=')), text, location, location});
    }
  }

  // Reports keys that a sweep must not set, and keys that are set twice.
  void check_keys() {
    std::set<std::string> in_grid, in_list;
    for (const Changes& values : grid_) in_grid.insert(values[0].key);
    for (const Changes& entry : list_)
      for (const Change& change : entry) in_list.insert(change.key);
    const auto check = [&](const Change& change) { changes_.check_change(change, !sweep_.seeds.empty()); };
    for (const Changes& values : grid_) check(values[0]);
    for (const Changes& entry : list_)
      for (const Change& change : entry) {
        check(change);
        if (in_grid.contains(change.key))
          report_.problem(change.location, change.key, "the grid sets it too; remove one of them");
      }
    for (const Change& change : common_) {
      check(change);
      if (in_grid.contains(change.key) || in_list.contains(change.key))
        report_.problem(change.location, change.key, "the sweep file sets it; change it there");
    }
  }

  // Opens the config of a setting: an entry of the list at a point of the grid, whose last key varies
  // fastest.
  void load(const Changes& entry, std::size_t point) {
    Changes in_grid;
    for (auto values = grid_.rbegin(); values != grid_.rend(); ++values) {
      in_grid.insert(in_grid.begin(), (*values)[point % values->size()]);
      point /= values->size();
    }
    Changes own = entry;
    own.insert(own.end(), in_grid.begin(), in_grid.end());
    Changes all = common_;
    all.insert(all.end(), own.begin(), own.end());
    std::optional<Config> config = changes_.load(sweep_.config, config_location_, all);
    if (!config) return;
    SweepSetting setting{sweep_.config, texts(own), *std::move(config)};
    const auto [first, is_new] = settings_.emplace(to_yaml(setting.config), setting.overrides);
    if (!is_new) report_repeated(own, first->second);
    sweep_.settings.push_back(std::move(setting));
  }

  void report_repeated(const Changes& own, const std::vector<std::string>& before) {
    const auto differs = [&](const Change& change) {
      return std::ranges::find(before, change.text) == before.end();
    };
    const auto found = std::ranges::find_if(own, differs);
    const Change& change = found != own.end() ? *found : own.back();
    if (repeated_.insert({change.location.line, change.location.column}).second)
      report_.problem(change.location, change.key,
                      fmt::format("same config as with {}; remove one of them", fmt::join(before, " ")));
  }

  Sweep& sweep_;
  Report& report_;
  config::ChangeReader changes_;
  SourceLocation config_location_;
  Changes common_;                                            // from the command line
  std::vector<Changes> list_;                                 // entries of at least one change
  std::vector<Changes> grid_;                                 // values of each key, at least one
  std::map<std::string, std::vector<std::string>> settings_;  // overrides by config
  std::set<std::pair<int, int>> repeated_;
};

}  // namespace

Sweep load_sweep(const std::string& path, const std::vector<std::string>& overrides) {
  Sweep sweep{.file = path, .config = {}, .overrides = overrides, .settings = {}, .seeds = {}};
  Report report(path);
  SweepReader reader(sweep, report);
  if (const auto root = parse_yaml(config::read_config_file(path), report.start_of_file(), report)) {
    reader.read(*root);
    reader.load_settings();
  }
  report.finish();
  return sweep;
}

}  // namespace thimble
