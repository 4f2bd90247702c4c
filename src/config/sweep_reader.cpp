#include "config/sweep_reader.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <set>

#include "config/fields.h"
#include "config/text.h"
#include "config/value.h"
#include "config/yaml.h"
#include "thimble/core/nearest.h"
#include "thimble/core/text.h"

namespace thimble::config {
namespace {

class SweepReader {
 public:
  explicit SweepReader(Report& report)
      : report_(report), folder_(std::filesystem::path(report.file_name(0)).parent_path()) {
    Config config;
    const Section root = describe(config);
    for (const Named& named : flatten(root))
      if (std::holds_alternative<Path>(named.field->kind)) path_keys_.insert(named.path);
  }

  SweepFile file;

  void read(const YAML::Node& root, const std::vector<std::string>& overrides) {
    static constexpr std::string_view kKeys[] = {"config", "grid", "list", "seeds"};
    if (!root.IsMap())
      return report_.problem(
          place_of(root.Mark(), 0), "",
          fmt::format("must be a map with {}, not {}", fmt::join(kKeys, ", "), found(root)));
    bool has_config = false;
    read_map(root, "", [&](const std::string& key, const YAML::Node& node, const Place& place) {
      if (key == "config") has_config = true;
      if (key == "config") return read_config(node, place_in(node, place));
      if (key == "grid") return read_grid(node, place_in(node, place));
      if (key == "list") return read_list(node, place_in(node, place));
      if (key == "seeds") return read_seeds(node, place_in(node, place));
      const std::string_view meant = nearest_name(key, kKeys);
      report_.problem(place, key,
                      meant.empty() ? fmt::format("unknown key, must be one of {}", fmt::join(kKeys, ", "))
                                    : fmt::format("unknown key, did you mean {}?", meant));
    });
    if (!has_config) report_.problem({}, "config", "missing; it names the config file to start from");
    read_common(overrides);
    check_keys();
  }

 private:
  // f(key, value, place of the key) for each entry with a key of its own.
  template <class F>
  void read_map(const YAML::Node& map, const std::string& parent, const F& f) {
    std::map<std::string, int> lines;  // of the keys so far
    for (const auto& entry : map) {
      const Place place = place_of(entry.first.Mark(), 0);
      if (!entry.first.IsScalar()) {
        report_.problem(place, parent + "?", fmt::format("a key must be a name, not {}", found(entry.first)));
        continue;
      }
      const std::string& key = entry.first.Scalar();
      const auto [first, is_new] = lines.emplace(key, place.line);
      if (is_new)
        f(key, entry.second, place);
      else
        report_.problem(place, key, fmt::format("repeated key, first on line {}", first->second));
    }
  }

  // yaml-cpp places a missing value after the next line break.
  static Place place_in(const YAML::Node& node, const Place& outer) {
    return node.IsNull() ? outer : place_of(node.Mark(), 0);
  }

  void must_be(const Place& place, const std::string& key, std::string_view rule, const YAML::Node& node) {
    const bool is_empty = (node.IsMap() || node.IsSequence()) && node.size() == 0;
    report_.problem(place, key, fmt::format("must be {}, not {}", rule, is_empty ? "empty" : found(node)));
  }

  void read_config(const YAML::Node& node, const Place& place) {
    file.config_place = place;
    if (!node.IsScalar() || node.Scalar().empty())
      return must_be(place, "config", "the path of a config", node);
    file.config = node.Scalar();
  }

  void read_grid(const YAML::Node& node, const Place& place) {
    if (!node.IsMap() || node.size() == 0)
      return must_be(place, "grid", "a map from keys to lists of values", node);
    read_map(node, "grid.", [&](const std::string& key, const YAML::Node& values, const Place& key_place) {
      if (!values.IsSequence() || values.size() == 0)
        return must_be(place_in(values, key_place), key, "a list of values", values);
      Changes& changes = file.grid.emplace_back();
      for (const auto& value : values) add_change(key, value, key_place, changes);
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
        add_change(key, value, key_place, changes);
      });
      if (changes.empty()) file.list.pop_back();
    }
  }

  void add_change(const std::string& key, const YAML::Node& node, const Place& key_place, Changes& changes) {
    const Place place = place_in(node, key_place);
    if (node.IsMap() || node.IsSequence()) return must_be(place, key, "one value", node);
    if (node.Tag().size() > 1)
      return report_.problem(place, key, fmt::format("tag {}; write the plain value", node.Tag()));
    std::string text = node.IsNull() ? "" : node.Scalar();
    if (!is_line(text)) return report_.problem(place, key, "must be UTF-8 without control characters");
    // Overrides start at the current folder.
    const bool is_path = path_keys_.contains(key) && !text.empty();
    if (is_path) text = std::filesystem::absolute(folder_ / text).lexically_normal().string();
    if (is_path || node.Tag() == "!") {  // what stood in quotes still does
      for (std::size_t i = 0; (i = text.find('\'', i)) != std::string::npos; i += 2) text.insert(i, 1, '\'');
      text = '\'' + text + '\'';
    }
    changes.push_back({key, key + '=' + text, key_place, place});
  }

  void read_seeds(const YAML::Node& node, const Place& place) {
    if (!node.IsSequence() || node.size() == 0) return must_be(place, "seeds", "a list of seeds", node);
    std::map<std::uint64_t, int> lines;
    for (const auto& entry : node) {
      const Place seed_place = place_in(entry, place);
      std::uint64_t seed = 0;
      const Field field{"", "", Seed{&seed}};
      if (!entry.IsScalar() || !assign(field, entry.Scalar(), entry.Tag() == "!", "")) {
        must_be(seed_place, "seeds", expectation(field), entry);
        continue;
      }
      const auto [first, is_new] = lines.emplace(seed, seed_place.line);
      if (is_new)
        file.seeds.push_back(seed);
      else
        report_.problem(seed_place, "seeds",
                        fmt::format("repeated seed {}, first on line {}", seed, first->second));
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
    const auto check = [&](const Change& change) {
      if (change.key == "train.threads")
        report_.problem(change.place, change.key,
                        "each run of a sweep has one thread, and it would change no result; see --jobs");
      if (change.key == "train.seed" && !file.seeds.empty())
        report_.problem(change.place, change.key, "seeds gives it already; leave one of them out");
    };
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
  std::filesystem::path folder_;     // of the sweep file
  std::set<std::string> path_keys_;  // of a config
};

}  // namespace

SweepFile read_sweep(const std::string& text, const std::vector<std::string>& overrides, Report& report) {
  SweepReader reader(report);
  if (check_text(text, 0, report))
    if (const auto root = parse_yaml(text, 0, report)) reader.read(*root, overrides);
  return reader.file;
}

}  // namespace thimble::config
