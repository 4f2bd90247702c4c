// Reading an experiment file: first what it asks for, see experiment.h, then the configs of its runs.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "config/map_reader.h"
#include "config/setting_loader.h"
#include "thimble/config/experiment.h"

namespace thimble::config {

class ExperimentReader : MapReader {
 public:
  ExperimentReader(const std::string& path, Report& report);

  void read(const YAML::Node& root);

  Experiment experiment;

 private:
  struct Entry {
    YAML::Node node;
    Place place;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  using Names = std::span<const std::string_view>;

  // The entries of a map that must have the first `required` of these keys and may have the others; those
  // that are there, if it is none.
  Entries read_entries(const YAML::Node& node, const Place& place, const std::string& key, Names keys,
                       std::size_t required);
  // f(name, value, its place) for each entry of a map from names, of which there is at least one.
  void read_named(const Entry& entry, const std::string& key, std::string_view rule, const Visit& f);

  // What stands there; nothing if it is missing, or something else, which is then reported.
  std::optional<std::string> read_text(const Entries& entries, std::string_view key);
  std::optional<double> read_number(const Entries& entries, std::string_view key);
  std::optional<std::size_t> read_choice(const Entries& entries, std::string_view key, Names names);

  void read_run(const std::string& name, const YAML::Node& node, const Place& place);
  Changes read_changes(const YAML::Node& node, const Place& place, const std::string& key);
  void read_evaluation(const std::string& name, const YAML::Node& node, const Place& place,
                       const Entry& config, Changes changes);

  // In experiment_values.cpp.
  void read_value(const std::string& name, const YAML::Node& node, const Place& place);
  void check_measurement(const ExperimentValue& value, const Entries& entries);
  void read_filter(const std::string& path, const YAML::Node& node, const Place& place,
                   std::vector<Filter>& filters);
  void read_conditions(const Entry& entry);
  Bound read_bound(const Entries& entries, const Place& place);
  bool has_value(const std::string& name, const Place& place, const std::string& key);

  Report& report_;
  SettingLoader loader_;
  std::map<std::string, Place> run_places_;
  std::map<std::string, bool> used_;  // whether a value needs that run
};

}  // namespace thimble::config
