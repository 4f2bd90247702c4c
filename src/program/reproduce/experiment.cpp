#include "program/reproduce/experiment.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include "train/config/changes.h"
#include "train/config/yaml.h"
#include "train/files/text/text.h"

namespace thimble {
namespace {

using config::Change;
using config::Changes;
using config::Report;
using config::YamlNode;
using KeyNames = std::span<const std::string_view>;

constexpr std::string_view kExperimentKeys[] = {"statement",  "source", "kind",  "runs", "values",
                                                "conditions", "quick",  "seeds", "data"};
constexpr std::string_view kRunKeys[] = {"config", "set", "evaluate"};
constexpr std::string_view kValueKeys[] = {"run", "of", "path", "where", "take", "otherwise", "least"};
constexpr std::string_view kConditionKeys[] = {"value", "at_least", "at_most", "above", "below", "by"};
constexpr KeyNames kBoundKeys = KeyNames(kConditionKeys).subspan(1);

// Returns whether the text is a name; names cannot be mistaken for numbers or paths.
bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_allowed = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && is_letter(text[0]) && std::ranges::all_of(text, is_allowed);
}

bool has_wildcard(const std::string& path) { return ("." + path + ".").find(".*.") != std::string::npos; }

// A reader of an experiment and of the configs of its runs; experiment.h describes the keys.
class ExperimentReader {
 public:
  ExperimentReader(Experiment& experiment, const std::string& data, Report& report)
      : experiment_(experiment), data_(data), report_(report), changes_(report) {}

  void read(const YamlNode& root) {
    check_keys(root, "", kExperimentKeys, 6);
    experiment_.statement = read_text(root, "statement");
    experiment_.source = read_text(root, "source");
    if (const auto kind = read_choice(root, "kind", kExperimentKinds))
      experiment_.kind = static_cast<ExperimentKind>(*kind);
    experiment_.data = read_text(root, "data");
    static constexpr std::string_view kBooleans[] = {"false", "true"};
    experiment_.quick = read_choice(root, "quick", kBooleans).value_or(1) == 1;
    experiment_.seeds = {42, 43, 44};
    if (const YamlNode* seeds = root.find("seeds")) {
      experiment_.seeds.clear();
      changes_.read_seeds(*seeds, experiment_.seeds);
    }
    read_named(root, "runs", "a map from names to runs", &ExperimentReader::read_run);
    read_named(root, "values", "a map from names to values", &ExperimentReader::read_value);
    for (const auto& [name, run] : unused_) report_.problem(run, name, "no value uses this run; remove it");
    if (const YamlNode* conditions = root.find("conditions")) read_conditions(*conditions);
  }

 private:
  // Checks a map, which must have the first `required` of these keys and may have the others.
  void check_keys(const YamlNode& node, const std::string& key, KeyNames keys, std::size_t required) {
    if (check_map(node, key, keys, report_)) require_keys(node, key, keys.first(required));
  }

  void require_keys(const YamlNode& node, const std::string& key, KeyNames keys) {
    for (const std::string_view name : keys)
      if (node.find(name) == nullptr)
        report_.problem(node.location, key,
                        fmt::format("missing key {}; required: {}", name, fmt::join(keys, ", ")));
  }

  // Calls f(name, value) for each entry of a map from names, which must not be empty.
  using ReadNamed = void (ExperimentReader::*)(const YamlNode&, const YamlNode&);
  void read_named(const YamlNode& map, std::string_view key, std::string_view rule, ReadNamed f) {
    const YamlNode* named = map.find(key);
    if (named == nullptr) return;
    if (!named->is_filled(YamlNode::Kind::map)) return must_be(*named, std::string(key), rule, report_);
    for_entries(*named, "", report_, [&](const YamlNode& name, const YamlNode& value) {
      if (is_name(name.text)) return (this->*f)(name, value);
      report_.problem(name.location, name.text,
                      "a name must consist of lowercase letters, digits and _, and start with a letter");
    });
  }

  // The next three return the value of a key, or nothing if the key is missing or its value is not of the
  // type, which is then reported.
  std::string read_text(const YamlNode& map, std::string_view key) {
    const YamlNode* node = map.find(key);
    if (node == nullptr) return "";
    if (node->is_text() && !node->text.empty() && is_line(node->text)) return node->text;
    must_be(*node, std::string(key), "a line of text", report_);
    return "";
  }
  std::optional<double> read_number(const YamlNode& map, std::string_view key) {
    constexpr double kMaxValue = 1e15;
    const YamlNode* node = map.find(key);
    if (node == nullptr) return std::nullopt;
    const auto number = number_of<double>(*node);
    if (number && std::abs(*number) <= kMaxValue) return number;
    must_be(*node, std::string(key), "a number", report_);
    return std::nullopt;
  }
  std::optional<std::size_t> read_choice(const YamlNode& map, std::string_view key, KeyNames names) {
    const YamlNode* node = map.find(key);
    if (node == nullptr) return std::nullopt;
    const auto found = node->is_text() ? std::ranges::find(names, node->text) : names.end();
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    must_be(*node, std::string(key), fmt::format("one of {}", fmt::join(names, ", ")), report_);
    return std::nullopt;
  }

  void read_run(const YamlNode& name, const YamlNode& node) {
    check_keys(node, name.text, kRunKeys, 1);
    unused_.emplace(name.text, node.location);
    ExperimentRun& run = experiment_.runs.emplace_back();
    run.name = name.text;
    run_changes_.clear();
    if (const YamlNode* set = node.find("set")) run_changes_ = read_changes(*set, "set");
    if (!experiment_.data.empty() && !data_.empty()) {
      const std::string file = std::filesystem::absolute(data_).string();
      run_changes_.push_back({"task.file", "task.file=" + file, node.location, node.location});
    }
    run.setting.overrides = texts(run_changes_);

    const YamlNode* config = node.find("config");
    if (config == nullptr) return;
    config_location_ = config->location;
    const std::filesystem::path file = changes_.read_config(*config);
    if (file.empty()) return;
    run.setting.file = file.lexically_normal().string();
    if (auto loaded = changes_.load(run.setting.file, config_location_, run_changes_))
      run.setting.config = *std::move(loaded);
    read_named(node, "evaluate", "a map from names to changes of the config",
               &ExperimentReader::read_evaluation);
  }

  // Adds an evaluation to the last run.
  void read_evaluation(const YamlNode& name, const YamlNode& node) {
    ExperimentRun& run = experiment_.runs.back();
    if (std::ranges::find(kMeasurements, name.text) != std::end(kMeasurements))
      return report_.problem(node.location, name.text, "reserved name; choose another");
    const Changes own = read_changes(node, name.text);
    run.evaluations.push_back({name.text, texts(own)});
    Changes all = run_changes_;
    all.insert(all.end(), own.begin(), own.end());
    changes_.load(run.setting.file, config_location_, all);
  }

  Changes read_changes(const YamlNode& node, const std::string& key) {
    Changes changes = changes_.read_changes(node, key, "a map from keys of the config to values");
    for (const Change& change : changes) changes_.check_change(change, true);
    return changes;
  }

  void read_value(const YamlNode& name, const YamlNode& node) {
    check_map(node, name.text, kValueKeys, report_);
    ExperimentValue value;
    value.name = name.text;
    if (const YamlNode* least = node.find("least")) {
      const auto given = [&](std::string_view key) { return node.find(key) != nullptr; };
      if (std::ranges::count_if(kValueKeys, given) > 1)
        report_.problem(least->location, "least", "least excludes every other key");
      if (!least->is_filled(YamlNode::Kind::list)) must_be(*least, "least", "a list of values", report_);
      for (const YamlNode& each : least->values)
        if (has_value(each.text, each.location, "least")) value.least.push_back(each.text);
      experiment_.values.push_back(std::move(value));
      return;
    }
    if (node.is_map()) require_keys(node, name.text, KeyNames(kValueKeys).first(3));
    value.run = read_text(node, "run");
    value.of = read_text(node, "of");
    value.path = read_text(node, "path");
    if (const YamlNode* otherwise = node.find("otherwise"))
      value.otherwise = otherwise->text == "never" ? std::numeric_limits<double>::infinity()
                                                   : read_number(node, "otherwise");
    if (const auto take = read_choice(node, "take", kTakes)) value.take = static_cast<Take>(*take);
    const YamlNode* where = node.find("where");
    if (where != nullptr) {
      if (!where->is_filled(YamlNode::Kind::map))
        must_be(*where, "where", "a map from paths to values or bounds", report_);
      else
        for_entries(*where, "", report_, [&](const YamlNode& path, const YamlNode& filter) {
          value.where.push_back(read_filter(path.text, filter));
        });
      if (!value.path.empty() && !has_wildcard(value.path))
        report_.problem(where->location, "where",
                        fmt::format("where requires a * in the path, {} has none", value.path));
    }
    if (!value.run.empty()) check_measurement(value, node);
    if (has_wildcard(value.path) && value.take == Take::only && where == nullptr)
      report_.problem(node.location, name.text,
                      fmt::format("{} may match several numbers; choose with take or where", value.path));
    experiment_.values.push_back(std::move(value));
  }

  void check_measurement(const ExperimentValue& value, const YamlNode& map) {
    const auto run = std::ranges::find(experiment_.runs, value.run, &ExperimentRun::name);
    if (run == experiment_.runs.end())
      return report_.problem(map.find("run")->location, "run", fmt::format("unknown run {}", value.run));
    unused_.erase(value.run);
    std::vector<std::string_view> names(std::begin(kMeasurements), std::end(kMeasurements));
    for (const Evaluation& evaluation : run->evaluations) names.push_back(evaluation.name);
    read_choice(map, "of", names);
  }

  Filter read_filter(const std::string& path, const YamlNode& node) {
    Filter filter{.path = path, .equals = node.text, .bound = {}};
    if (node.is_map()) {
      check_map(node, path, kBoundKeys, report_);
      filter.bound = read_bound(node);
    } else if (!node.is_text() || node.text.empty()) {
      must_be(node, path, fmt::format("a text, a number or a map with {}", fmt::join(kBoundKeys, ", ")),
              report_);
    }
    return filter;
  }

  void read_conditions(const YamlNode& list) {
    if (!list.is_filled(YamlNode::Kind::list))
      return must_be(list, "conditions", "a list of conditions", report_);
    for (const YamlNode& node : list.values) {
      check_keys(node, "conditions", kConditionKeys, 1);
      Condition condition{.value = read_text(node, "value"), .bound = {}};
      if (!condition.value.empty()) has_value(condition.value, node.find("value")->location, "value");
      condition.bound = read_bound(node);
      experiment_.conditions.push_back(std::move(condition));
    }
  }

  Bound read_bound(const YamlNode& map) {
    Bound bound;
    bound.by = read_number(map, "by").value_or(0);
    int count = 0;
    for (std::size_t i = 0; i < std::size(kRelations); ++i) {
      const YamlNode* node = map.find(kRelations[i]);
      if (node == nullptr) continue;
      ++count;
      bound.relation = static_cast<Bound::Relation>(i);
      const std::string key(kRelations[i]);
      if (node->text.empty() || node->text[0] < 'a')
        bound.number = read_number(map, key).value_or(0);
      else if (has_value(node->text, node->location, key))
        bound.value = node->text;
    }
    if (count != 1)
      report_.problem(map.location, "",
                      fmt::format("must have one of {}, has {}", fmt::join(kRelations, ", "), count));
    return bound;
  }

  bool has_value(const std::string& name, const SourceLocation& location, const std::string& key) {
    const auto value = std::ranges::find(experiment_.values, name, &ExperimentValue::name);
    if (value != experiment_.values.end()) return true;
    report_.problem(location, key, fmt::format("unknown value {}; define it further up", name));
    return false;
  }

  Experiment& experiment_;
  const std::string& data_;
  Report& report_;
  config::ChangeReader changes_;
  Changes run_changes_;                           // of the last run
  SourceLocation config_location_;                // of the last run
  std::map<std::string, SourceLocation> unused_;  // runs that no value uses, so far
};

}  // namespace

Experiment load_experiment(const std::string& path, const std::string& data) {
  Experiment experiment;
  experiment.file = path;
  experiment.name = std::filesystem::path(path).stem().string();
  Report report(path);
  if (const auto root = parse_yaml(config::read_config_file(path), report.start_of_file(), report))
    ExperimentReader(experiment, data, report).read(*root);
  report.finish();
  return experiment;
}

}  // namespace thimble
