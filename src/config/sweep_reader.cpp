#include "config/sweep_reader.h"

#include <fmt/ranges.h>

#include <set>

#include "config/text.h"
#include "config/yaml.h"

namespace thimble::config {
namespace {

class SweepReader : MapReader {
 public:
  explicit SweepReader(Report& report) : MapReader(report), report_(report) {}

  SweepFile file;

  void read(const YAML::Node& root, const std::vector<std::string>& overrides) {
    static constexpr std::string_view kKeys[] = {"config", "grid", "list", "seeds"};
    if (!root.IsMap())
      return report_.problem(
          place_of(root.Mark(), 0), "",
          fmt::format("must be a map with {}, not {}", fmt::join(kKeys, ", "), found(root)));
    bool has_config = false;
    read_map(root, "", [&](const std::string& key, const YAML::Node& node, const Place& place) {
      if (key == "config") {
        has_config = true;
        file.config_place = place_in(node, place);
        file.config = read_config(node, file.config_place);
        return;
      }
      if (key == "grid") return read_grid(node, place_in(node, place));
      if (key == "list") return read_list(node, place_in(node, place));
      if (key == "seeds") return read_seeds(node, place_in(node, place), file.seeds);
      unknown_key(place, key, kKeys);
    });
    if (!has_config) report_.problem({}, "config", "missing; it names the config file to start from");
    read_common(overrides);
    check_keys();
  }

 private:
  void read_grid(const YAML::Node& node, const Place& place) {
    if (!node.IsMap() || node.size() == 0)
      return must_be(place, "grid", "a map from keys to lists of values", node);
    read_map(node, "grid.", [&](const std::string& key, const YAML::Node& values, const Place& key_place) {
      if (!values.IsSequence() || values.size() == 0)
        return must_be(place_in(values, key_place), key, "a list of values", values);
      Changes& changes = file.grid.emplace_back();
      for (const auto& value : values) read_change(key, value, key_place, changes);
      if (changes.empty()) file.grid.pop_back();
    });
  }

  void read_list(const YAML::Node& node, const Place& place) {
    constexpr std::string_view kRule = "a list of settings, each a map from keys to values";
    if (!node.IsSequence() || node.size() == 0) return must_be(place, "list", kRule, node);
    for (const auto& entry : node) {
      if (!entry.IsMap() || entry.size() == 0) {
        must_be(place_in(entry, place), "list", kRule, entry);
        continue;
      }
      Changes& changes = file.list.emplace_back();
      read_map(entry, "list.", [&](const std::string& key, const YAML::Node& value, const Place& key_place) {
        read_change(key, value, key_place, changes);
      });
      if (changes.empty()) file.list.pop_back();
    }
  }

  void read_common(const std::vector<std::string>& overrides) {
    int number = 0;
    for (const std::string& text : overrides) {
      const Place place{.argument = ++number, .argument_text = text};
      file.common.push_back({text.substr(0, text.find('=')), text, place, place});
    }
  }

  // What may not be set, or not twice.
  void check_keys() {
    std::set<std::string> in_grid, in_list;
    for (const Changes& values : file.grid) in_grid.insert(values[0].key);
    for (const Changes& entry : file.list)
      for (const Change& change : entry) in_list.insert(change.key);
    const auto check = [&](const Change& change) { check_change(change, !file.seeds.empty()); };
    for (const Changes& values : file.grid) check(values[0]);
    for (const Changes& entry : file.list)
      for (const Change& change : entry) {
        check(change);
        if (in_grid.contains(change.key))
          report_.problem(change.place, change.key, "it is in the grid, too; leave one of them out");
      }
    for (const Change& change : file.common) {
      check(change);
      if (in_grid.contains(change.key) || in_list.contains(change.key))
        report_.problem(change.place, change.key, "the sweep varies it; change the sweep file");
    }
  }

  Report& report_;
};

}  // namespace

SweepFile read_sweep(const std::string& text, const std::vector<std::string>& overrides, Report& report) {
  SweepReader reader(report);
  if (check_text(text, 0, report))
    if (const auto root = parse_yaml(text, 0, report)) reader.read(*root, overrides);
  return reader.file;
}

}  // namespace thimble::config
