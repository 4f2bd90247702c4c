// What an experiment measures, and the conditions that decide.
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "config/experiment_reader.h"

namespace thimble::config {

namespace {

constexpr std::string_view kValueKeys[] = {"run", "of", "path", "where", "take", "otherwise"};
constexpr std::string_view kConditionKeys[] = {"value", "at_least", "at_most", "above", "below", "by"};
constexpr std::span<const std::string_view> kBoundKeys = std::span(kConditionKeys).subspan(1);

bool has_wildcard(const std::string& path) { return ("." + path + ".").find(".*.") != std::string::npos; }

}  // namespace

void ExperimentReader::read_value(const std::string& name, const YAML::Node& node, const Place& place) {
  const Entries entries = read_entries(node, place, name, kValueKeys, 3);
  ExperimentValue value;
  value.name = name;
  value.run = read_text(entries, "run").value_or("");
  value.of = read_text(entries, "of").value_or("");
  value.path = read_text(entries, "path").value_or("");
  if (const auto otherwise = entries.find("otherwise"); otherwise != entries.end()) {
    const YAML::Node& number = otherwise->second.node;
    const bool never = number.IsScalar() && number.Scalar() == "never";
    value.otherwise = never ? std::numeric_limits<double>::infinity() : read_number(entries, "otherwise");
  }
  if (const auto take = read_choice(entries, "take", kTakes)) value.take = static_cast<Take>(*take);
  if (const auto where = entries.find("where"); where != entries.end()) {
    const auto& [map, at] = where->second;
    if (!map.IsMap() || map.size() == 0)
      must_be(at, "where", "a map from paths to what is looked for there", map);
    else
      read_map(map, "", [&](const std::string& path, const YAML::Node& filter, const Place& key_place) {
        read_filter(path, filter, place_in(filter, key_place), value.where);
      });
    if (!value.path.empty() && !has_wildcard(value.path))
      report_.problem(at, "where", fmt::format("chooses among what a * stands for; {} has none", value.path));
  }
  if (!value.run.empty()) check_measurement(value, entries);
  if (has_wildcard(value.path) && value.take == Take::only && !entries.contains("where"))
    report_.problem(place, name,
                    fmt::format("{} may stand for many numbers; say which with take or where", value.path));
  experiment.values.push_back(std::move(value));
}

void ExperimentReader::check_measurement(const ExperimentValue& value, const Entries& entries) {
  const auto run = std::ranges::find(experiment.runs, value.run, &ExperimentRun::name);
  if (run == experiment.runs.end())
    return report_.problem(entries.find("run")->second.place, "run",
                           fmt::format("there is no run {}", value.run));
  used_[value.run] = true;
  std::vector<std::string_view> names(std::begin(kMeasurements), std::end(kMeasurements));
  for (const Evaluation& evaluation : run->evaluations) names.push_back(evaluation.name);
  read_choice(entries, "of", names);
}

void ExperimentReader::read_filter(const std::string& path, const YAML::Node& node, const Place& place,
                                   std::vector<Filter>& filters) {
  Filter& filter = filters.emplace_back();
  filter.path = path;
  if (node.IsMap())
    filter.bound = read_bound(read_entries(node, place, path, kBoundKeys, 0), place);
  else if (node.IsScalar() && !node.Scalar().empty())
    filter.equals = node.Scalar();
  else
    must_be(place, path, fmt::format("a text, a number or a map with {}", fmt::join(kBoundKeys, ", ")), node);
}

void ExperimentReader::read_conditions(const Entry& entry) {
  constexpr std::string_view kRule = "a list of conditions";
  if (!entry.node.IsSequence() || entry.node.size() == 0)
    return must_be(entry.place, "conditions", kRule, entry.node);
  for (const auto& node : entry.node) {
    const Place place = place_in(node, entry.place);
    const Entries entries = read_entries(node, place, "conditions", kConditionKeys, 1);
    Condition condition;
    if (const auto name = read_text(entries, "value")) {
      condition.value = *name;
      has_value(*name, entries.find("value")->second.place, "value");
    }
    condition.bound = read_bound(entries, place);
    experiment.conditions.push_back(std::move(condition));
  }
}

Bound ExperimentReader::read_bound(const Entries& entries, const Place& place) {
  Bound bound;
  bound.by = read_number(entries, "by").value_or(0);
  int count = 0;
  for (std::size_t i = 0; i < std::size(kRelations); ++i) {
    const auto entry = entries.find(kRelations[i]);
    if (entry == entries.end()) continue;
    ++count;
    bound.relation = static_cast<Bound::Relation>(i);
    const auto& [node, at] = entry->second;
    const bool is_value = node.IsScalar() && !node.Scalar().empty() && node.Scalar()[0] >= 'a';
    if (!is_value)
      bound.number = read_number(entries, entry->first).value_or(0);
    else if (has_value(node.Scalar(), at, entry->first))
      bound.value = node.Scalar();
  }
  if (count != 1)
    report_.problem(place, "", fmt::format("needs one of {}, has {}", fmt::join(kRelations, ", "), count));
  return bound;
}

bool ExperimentReader::has_value(const std::string& name, const Place& place, const std::string& key) {
  const auto value = std::ranges::find(experiment.values, name, &ExperimentValue::name);
  if (value != experiment.values.end()) return true;
  report_.problem(place, key, fmt::format("there is no value {} before this", name));
  return false;
}

}  // namespace thimble::config
