// What the readers of sweeps and of experiments share: maps with keys of their own, and changes to a config.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/report.h"
#include "config/yaml.h"

namespace thimble::config {

// A value that a config gets.
struct Change {
  std::string key, text;   // text: "key=value"
  Place key_place, place;  // place: of the value
};
using Changes = std::vector<Change>;

// Each function reports what is wrong at its place; what is right is returned or appended.
class MapReader {
 public:
  // For the first file of the report.
  explicit MapReader(Report& report);

  // f(key, value, place of the key) for each entry with a key of its own.
  using Visit = std::function<void(const std::string&, const YAML::Node&, const Place&)>;
  void read_map(const YAML::Node& map, const std::string& parent, const Visit& f);

  // Where the value stands: yaml-cpp places a missing one after the next line break, so that of its key.
  static Place place_in(const YAML::Node& node, const Place& key_place);

  void must_be(const Place& place, const std::string& key, std::string_view rule, const YAML::Node& node);
  void unknown_key(const Place& place, const std::string& key, std::span<const std::string_view> keys);

  // The path of a config, or "".
  std::string read_config(const YAML::Node& node, const Place& place);
  void read_change(const std::string& key, const YAML::Node& node, const Place& key_place, Changes& changes);
  void read_seeds(const YAML::Node& node, const Place& place, std::vector<std::uint64_t>& seeds);

  // A change to what each run has from elsewhere: threads, and the seed if the file lists seeds.
  void check_change(const Change& change, bool has_seeds);

 private:
  Report& report_;
  std::filesystem::path folder_;     // of the file
  std::set<std::string> path_keys_;  // of a config
};

}  // namespace thimble::config
