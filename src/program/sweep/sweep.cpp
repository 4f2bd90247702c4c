#include "program/sweep/sweep.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "program/sweep/random_search.h"
#include "train/config/changes.h"
#include "train/config/yaml.h"
#include "train/files/text/text.h"

namespace thimble {
namespace {

using config::Change;
using config::Changes;
using config::Report;
using config::YamlNode;

// A reader of a sweep file and of the config of every setting.
class SweepReader {
 public:
  SweepReader(Sweep& sweep, Report& report)
      : sweep_(sweep), report_(report), changes_(report), random_(changes_, report) {}

  void read(const YamlNode& root) {
    static constexpr std::string_view kKeys[] = {"config", "grid", "list", "seeds", "random", "halving"};
    if (root.find("task") != nullptr && root.find("config") == nullptr)
      return report_.problem(
          report_.start_of_file(), "",
          fmt::format("is a config, not a sweep; thimble train {} trains it, a sweep has config: {}",
                      shell_path(sweep_.file), sweep_.file));
    if (!check_map(root, "", kKeys, report_)) return;
    const YamlNode* config = root.find("config");
    if (config != nullptr) {
      config_location_ = config->location;
      sweep_.config = changes_.read_config(*config);
    }
    if (const YamlNode* grid = root.find("grid")) read_grid(*grid);
    if (const YamlNode* list = root.find("list")) read_list(*list);
    if (const YamlNode* seeds = root.find("seeds")) changes_.read_seeds(*seeds, sweep_.seeds);
    if (const YamlNode* random = root.find("random")) random_.read(*random);
    if (const YamlNode* halving = root.find("halving")) read_halving(*halving);
    if (config == nullptr)
      report_.problem(report_.start_of_file(), "config",
                      "missing key; set it to the config file to start from");
    read_common();
    check_keys();
  }

  void load_settings() {
    std::size_t points = 1;
    double runs = static_cast<double>(std::max<std::size_t>(1, list_.size()) *
                                      std::max<std::size_t>(1, sweep_.seeds.size())) *
                  static_cast<double>(std::max<std::int64_t>(1, random_.samples()));
    for (const Changes& values : grid_) runs *= static_cast<double>(values.size());
    if (runs > kMaxSweepRuns)
      return report_.problem(report_.start_of_file(), "",
                             fmt::format("{:.0f} runs; a sweep has at most {}", runs, kMaxSweepRuns));
    if (sweep_.config.empty()) return;
    if (list_.empty()) list_.emplace_back();
    for (const Changes& values : grid_) points *= values.size();
    std::vector<Changes> samples = random_.draw();
    if (samples.empty()) samples.emplace_back();
    for (const Changes& entry : list_)
      for (std::size_t point = 0; point < points; ++point)
        for (const Changes& sample : samples) load(entry, point, sample);
    check_halving();
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
    for (const YamlNode& entry : node.values)
      if (Changes changes = changes_.read_changes(entry, "list", kRule); !changes.empty())
        list_.push_back(std::move(changes));
  }

  void read_halving(const YamlNode& node) {
    static constexpr std::string_view kKeys[] = {"steps", "reduction_factor"};
    if (!check_map(node, "halving", kKeys, report_, "halving.")) return;
    if (const YamlNode* factor = node.find("reduction_factor")) {
      if (const auto number = number_of<std::int64_t>(*factor); number && *number >= 2)
        sweep_.halving.reduction_factor = *number;
      else
        must_be(*factor, "halving.reduction_factor", "an integer from 2", report_);
    }
    const YamlNode* steps = node.find("steps");
    if (steps == nullptr)
      return report_.problem(node.location, "halving.steps",
                             "missing key; set it to the steps after which the worse settings stop");
    halving_location_ = steps->location;
    read_halving_steps(*steps);
  }

  void read_halving_steps(const YamlNode& node) {
    constexpr std::string_view kRule = "a list of steps in ascending order";
    std::vector<std::int64_t>& steps = sweep_.halving.steps;
    if (!node.is_filled(YamlNode::Kind::list)) return must_be(node, "halving.steps", kRule, report_);
    for (const YamlNode& entry : node.values) {
      const auto step = number_of<std::int64_t>(entry);
      if (!step || *step < 1 || (!steps.empty() && *step <= steps.back()))
        return must_be(entry, "halving.steps", kRule, report_);
      steps.push_back(*step);
    }
  }

  // Reports steps of halving after which a setting is not evaluated, or training has ended.
  void check_halving() {
    const auto problem = [&](const std::string& rule) {
      report_.problem(halving_location_, "halving.steps", rule);
    };
    for (const SweepSetting& setting : sweep_.settings)
      for (const std::int64_t step : sweep_.halving.steps) {
        const TrainConfig& train = setting.config.train;
        const std::string where =
            setting.overrides.empty() ? "" : fmt::format(" with {}", fmt::join(setting.overrides, " "));
        if (step >= train.steps)
          return problem(fmt::format("step {} must be less than train.steps ({}){}; change one of them", step,
                                     train.steps, where));
        const std::string every =
            train.evaluate_every == kAuto ? "auto" : std::to_string(train.evaluate_every);
        if (train.evaluate_every == 0 || step % train.evaluate_every != 0)
          return problem(fmt::format(
              "step {} must be a multiple of train.evaluate_every ({}){}, as settings are compared by their validation loss; change one of them",
              step, every, where));
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
    std::map<std::string, std::string_view> set_by;
    const auto check = [&](const Change& change) {
      changes_.check_change(change, !sweep_.seeds.empty());
      if (const auto found = set_by.find(change.key); found != set_by.end())
        report_.problem(change.location, change.key,
                        fmt::format("the {} sets it too; remove one of them", found->second));
    };
    const Changes in_random = random_.keys();
    for (const Changes& values : grid_) check(values[0]);
    for (const Changes& values : grid_) set_by.emplace(values[0].key, "grid");
    for (const Change& change : in_random) check(change);
    for (const Change& change : in_random) set_by.emplace(change.key, "random search");
    for (const Changes& entry : list_)
      for (const Change& change : entry) check(change);
    for (const Changes& entry : list_)
      for (const Change& change : entry) set_by.emplace(change.key, "list");
    for (const Change& change : common_) {
      changes_.check_change(change, !sweep_.seeds.empty());
      if (set_by.contains(change.key))
        report_.problem(change.location, change.key, "the sweep file sets it; change it there");
    }
  }

  // Opens the config of a setting: an entry of the list at a point of the grid, whose last key varies
  // fastest, with a sample of the random search.
  void load(const Changes& entry, std::size_t point, const Changes& sample) {
    Changes in_grid;
    for (auto values = grid_.rbegin(); values != grid_.rend(); ++values) {
      in_grid.insert(in_grid.begin(), (*values)[point % values->size()]);
      point /= values->size();
    }
    Changes own = entry;
    own.insert(own.end(), in_grid.begin(), in_grid.end());
    own.insert(own.end(), sample.begin(), sample.end());
    Changes all = common_;
    all.insert(all.end(), own.begin(), own.end());
    std::optional<OpenConfig> config = changes_.load(sweep_.config, config_location_, all);
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
  RandomSearch random_;
  SourceLocation config_location_, halving_location_;
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

std::vector<std::string> setting_labels(std::span<const std::vector<std::string>> overrides) {
  const auto key_of = [](const std::string& text) { return text.substr(0, text.find('=')); };
  const auto leaf_of = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  std::map<std::string, std::size_t> uses;             // settings by override
  std::map<std::string, std::set<std::string>> paths;  // by last name
  for (const std::vector<std::string>& setting : overrides)
    for (const std::string& text : setting) {
      ++uses[text];
      paths[leaf_of(key_of(text))].insert(key_of(text));
    }
  std::vector<std::string> labels;
  for (const std::vector<std::string>& setting : overrides) {
    std::string& label = labels.emplace_back();
    for (const std::string& text : setting) {
      if (uses[text] == overrides.size()) continue;
      const std::string key = key_of(text), leaf = leaf_of(key);
      if (!label.empty()) label += ' ';
      label += (paths[leaf].size() == 1 ? leaf : key) + text.substr(key.size());
    }
    if (label.empty()) label = "(the config)";
  }
  return labels;
}

std::vector<std::string> setting_labels(const Sweep& sweep) {
  std::vector<std::vector<std::string>> overrides;
  for (const SweepSetting& setting : sweep.settings) overrides.push_back(setting.overrides);
  return setting_labels(overrides);
}

}  // namespace thimble
