#include "thimble/config/experiment.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "config/experiment_reader.h"
#include "config/fields.h"
#include "config/text.h"
#include "config/value.h"
#include "thimble/core/text.h"

namespace thimble {

namespace config {

namespace {

// Names never look like numbers or paths.
bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_allowed = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && is_letter(text[0]) && std::ranges::all_of(text, is_allowed);
}

constexpr std::string_view kKeys[] = {"statement", "source",     "kind",  "runs",
                                      "values",    "conditions", "quick", "seeds"};
constexpr std::string_view kRunKeys[] = {"config", "set", "evaluate"};

}  // namespace

ExperimentReader::ExperimentReader(const std::string& path, Report& report)
    : MapReader(report), report_(report), loader_(report) {
  experiment.file = path;
  experiment.name = std::filesystem::path(path).stem().string();
}

void ExperimentReader::read(const YAML::Node& root) {
  const Entries entries = read_entries(root, place_of(root.Mark(), 0), "", kKeys, 6);
  experiment.statement = read_text(entries, "statement").value_or("");
  experiment.source = read_text(entries, "source").value_or("");
  if (const auto kind = read_choice(entries, "kind", kExperimentKinds))
    experiment.kind = static_cast<ExperimentKind>(*kind);
  static constexpr std::string_view kBooleans[] = {"false", "true"};
  experiment.quick = read_choice(entries, "quick", kBooleans).value_or(1) == 1;
  experiment.seeds = {42, 43, 44};
  if (const auto seeds = entries.find("seeds"); seeds != entries.end()) {
    experiment.seeds.clear();
    read_seeds(seeds->second.node, seeds->second.place, experiment.seeds);
  }
  if (const auto runs = entries.find("runs"); runs != entries.end())
    read_named(runs->second, "runs", "a map from names to runs",
               [this](const auto&... x) { read_run(x...); });
  if (const auto values = entries.find("values"); values != entries.end())
    read_named(values->second, "values", "a map from names to values",
               [this](const auto&... x) { read_value(x...); });
  for (const auto& [name, used] : used_)
    if (!used) report_.problem(run_places_.at(name), name, "no value is taken from this run; leave it out");
  if (const auto conditions = entries.find("conditions"); conditions != entries.end())
    read_conditions(conditions->second);
}

ExperimentReader::Entries ExperimentReader::read_entries(const YAML::Node& node, const Place& place,
                                                         const std::string& key, Names keys,
                                                         std::size_t required) {
  Entries entries;
  if (!node.IsMap() || node.size() == 0) {
    must_be(place, key, fmt::format("a map with {}", fmt::join(keys, ", ")), node);
    return entries;
  }
  read_map(node, "", [&](const std::string& name, const YAML::Node& value, const Place& key_place) {
    if (std::ranges::find(keys, name) == keys.end()) return unknown_key(key_place, name, keys);
    entries.emplace(name, Entry{value, place_in(value, key_place)});
  });
  for (const std::string_view name : keys.first(required))
    if (!entries.contains(name))
      report_.problem(
          place, key,
          fmt::format("{} is missing; it must have {}", name, fmt::join(keys.first(required), ", ")));
  return entries;
}

void ExperimentReader::read_named(const Entry& entry, const std::string& key, std::string_view rule,
                                  const Visit& f) {
  if (!entry.node.IsMap() || entry.node.size() == 0) return must_be(entry.place, key, rule, entry.node);
  read_map(entry.node, "", [&](const std::string& name, const YAML::Node& node, const Place& place) {
    if (!is_name(name))
      return report_.problem(place, name, "a name has small letters, digits and _, a letter first");
    f(name, node, place_in(node, place));
  });
}

std::optional<std::string> ExperimentReader::read_text(const Entries& entries, std::string_view key) {
  const auto entry = entries.find(key);
  if (entry == entries.end()) return std::nullopt;
  const auto& [node, place] = entry->second;
  if (node.IsScalar() && !node.Scalar().empty() && is_line(node.Scalar())) return node.Scalar();
  must_be(place, entry->first, "a line of text", node);
  return std::nullopt;
}

std::optional<double> ExperimentReader::read_number(const Entries& entries, std::string_view key) {
  const auto entry = entries.find(key);
  if (entry == entries.end()) return std::nullopt;
  const auto& [node, place] = entry->second;
  constexpr double kLargest = 1e15;
  double number = 0;
  const Field field{"", "", Real{&number, -kLargest, kLargest}};
  if (node.IsScalar() && assign(field, node.Scalar(), node.Tag() == "!", "")) return number;
  must_be(place, entry->first, "a number", node);
  return std::nullopt;
}

std::optional<std::size_t> ExperimentReader::read_choice(const Entries& entries, std::string_view key,
                                                         Names names) {
  const auto entry = entries.find(key);
  if (entry == entries.end()) return std::nullopt;
  const auto& [node, place] = entry->second;
  const auto found = node.IsScalar() ? std::ranges::find(names, node.Scalar()) : names.end();
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  must_be(place, entry->first, fmt::format("one of {}", fmt::join(names, ", ")), node);
  return std::nullopt;
}

void ExperimentReader::read_run(const std::string& name, const YAML::Node& node, const Place& place) {
  const Entries entries = read_entries(node, place, name, kRunKeys, 1);
  run_places_.emplace(name, place);
  used_.emplace(name, false);
  ExperimentRun& run = experiment.runs.emplace_back();
  run.name = name;
  Changes changes;
  if (const auto set = entries.find("set"); set != entries.end())
    changes = read_changes(set->second.node, set->second.place, "set");
  run.setting.overrides = texts(changes);

  const auto config = entries.find("config");
  if (config == entries.end()) return;
  const std::string file = read_config(config->second.node, config->second.place);
  if (file.empty()) return;
  run.setting.file =
      (std::filesystem::path(experiment.file).parent_path() / file).lexically_normal().string();
  if (auto loaded = loader_.load(run.setting.file, config->second.place, changes))
    run.setting.config = *std::move(loaded);
  if (const auto evaluate = entries.find("evaluate"); evaluate != entries.end())
    read_named(evaluate->second, "evaluate", "a map from names to changes of the config",
               [&](const std::string& evaluation, const YAML::Node& value, const Place& at) {
                 read_evaluation(evaluation, value, at, config->second, changes);
               });
}

Changes ExperimentReader::read_changes(const YAML::Node& node, const Place& place, const std::string& key) {
  Changes changes;
  if (!node.IsMap() || node.size() == 0) {
    must_be(place, key, "a map from keys of the config to values", node);
    return changes;
  }
  read_map(node, "", [&](const std::string& name, const YAML::Node& value, const Place& key_place) {
    read_change(name, value, key_place, changes);
  });
  for (const Change& change : changes) check_change(change, true);
  return changes;
}

void ExperimentReader::read_evaluation(const std::string& name, const YAML::Node& node, const Place& place,
                                       const Entry& config, Changes changes) {
  ExperimentRun& run = experiment.runs.back();
  if (std::ranges::find(kMeasurements, name) != std::end(kMeasurements))
    return report_.problem(place, name, "is what every run has; choose another name");
  const Changes own = read_changes(node, place, name);
  run.evaluations.push_back({name, texts(own)});
  changes.insert(changes.end(), own.begin(), own.end());
  loader_.load(run.setting.file, config.place, changes);
}

}  // namespace config

Experiment load_experiment(const std::string& path) {
  config::Report report(path);
  config::ExperimentReader reader(path, report);
  const std::string text = config::read_file(path);
  if (config::check_text(text, 0, report))
    if (const auto root = config::parse_yaml(text, 0, report)) reader.read(*root);
  report.finish();
  return reader.experiment;
}

}  // namespace thimble
