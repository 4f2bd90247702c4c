#include "config/map_reader.h"

#include <fmt/ranges.h>

#include <map>

#include "config/fields.h"
#include "config/value.h"
#include "thimble/core/nearest.h"
#include "thimble/core/text.h"

namespace thimble::config {

MapReader::MapReader(Report& report)
    : report_(report), folder_(std::filesystem::path(report.file_name(0)).parent_path()) {
  Config config;
  const Section root = describe(config);
  for (const Named& named : flatten(root))
    if (std::holds_alternative<Path>(named.field->kind)) path_keys_.insert(named.path);
}

void MapReader::read_map(const YAML::Node& map, const std::string& parent, const Visit& f) {
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

Place MapReader::place_in(const YAML::Node& node, const Place& key_place) {
  return node.IsNull() ? key_place : place_of(node.Mark(), 0);
}

void MapReader::must_be(const Place& place, const std::string& key, std::string_view rule,
                        const YAML::Node& node) {
  const bool is_empty = (node.IsMap() || node.IsSequence()) && node.size() == 0;
  report_.problem(place, key, fmt::format("must be {}, not {}", rule, is_empty ? "empty" : found(node)));
}

void MapReader::unknown_key(const Place& place, const std::string& key,
                            std::span<const std::string_view> keys) {
  const std::string_view meant = nearest_name(key, keys);
  report_.problem(place, key,
                  meant.empty() ? fmt::format("unknown key, must be one of {}", fmt::join(keys, ", "))
                                : fmt::format("unknown key, did you mean {}?", meant));
}

std::string MapReader::read_config(const YAML::Node& node, const Place& place) {
  if (node.IsScalar() && !node.Scalar().empty()) return node.Scalar();
  must_be(place, "config", "the path of a config", node);
  return "";
}

void MapReader::read_change(const std::string& key, const YAML::Node& node, const Place& key_place,
                            Changes& changes) {
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

void MapReader::read_seeds(const YAML::Node& node, const Place& place, std::vector<std::uint64_t>& seeds) {
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
      seeds.push_back(seed);
    else
      report_.problem(seed_place, "seeds",
                      fmt::format("repeated seed {}, first on line {}", seed, first->second));
  }
}

void MapReader::check_change(const Change& change, bool has_seeds) {
  if (change.key == "train.threads")
    report_.problem(change.place, change.key,
                    "each run of a sweep has one thread, and it would change no result; see --jobs");
  if (change.key == "train.seed" && has_seeds)
    report_.problem(change.place, change.key, "seeds gives it already; leave one of them out");
}

}  // namespace thimble::config
