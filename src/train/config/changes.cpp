#include "train/config/changes.h"

#include <fmt/format.h>

#include <map>

#include "thimble/engine/error.h"
#include "train/config/fields.h"
#include "train/config/value.h"

namespace thimble::config {

std::vector<std::string> texts(const Changes& changes) {
  std::vector<std::string> out;
  for (const Change& change : changes) out.push_back(change.text);
  return out;
}

ChangeReader::ChangeReader(Report& report)
    : report_(report), folder_(std::filesystem::path(report.files()[0]).parent_path()) {
  Config config;
  const Section root = describe(config);
  for (const Named& named : flatten(root)) {
    keys_.insert(named.path);
    if (std::holds_alternative<Path>(named.field->kind)) path_keys_.insert(named.path);
  }
}

std::string ChangeReader::read_config(const YamlNode& node) {
  if (node.is_text() && !node.text.empty()) return (folder_ / node.text).string();
  must_be(node, "config", "the path of a config", report_);
  return "";
}

void ChangeReader::read_change(const YamlNode& key, const YamlNode& value, Changes& changes) {
  if (value.is_map() || value.is_list()) return must_be(value, key.text, "one value", report_);
  std::string text = value.text;
  // In overrides, paths are relative to the current folder.
  const bool is_path = path_keys_.contains(key.text) && assign({"", "", Path{&text}}, text, false, folder_);
  if (is_path || value.quoted) {  // quoted text must stay quoted
    for (std::size_t i = 0; (i = text.find('\'', i)) != std::string::npos; i += 2) text.insert(i, 1, '\'');
    text = '\'' + text + '\'';
  }
  changes.push_back({key.text, key.text + '=' + text, key.location, value.location});
}

Changes ChangeReader::read_changes(const YamlNode& map, const std::string& key, std::string_view rule) {
  Changes changes;
  if (!map.is_filled(YamlNode::Kind::map)) must_be(map, key, rule, report_);
  for_entries(map, "", report_,
              [&](const YamlNode& name, const YamlNode& value) { read_change(name, value, changes); });
  return changes;
}

void ChangeReader::read_seeds(const YamlNode& node, std::vector<std::uint64_t>& seeds) {
  if (!node.is_filled(YamlNode::Kind::list)) return must_be(node, "seeds", "a list of seeds", report_);
  std::map<std::uint64_t, int> lines;
  for (const YamlNode& entry : node.values) {
    std::uint64_t seed = 0;
    const Field field{"", "", Seed{&seed}};
    if (!entry.is_text() || !assign(field, entry.text, entry.quoted, "")) {
      must_be(entry, "seeds", expectation(field), report_);
      continue;
    }
    const auto [first, is_new] = lines.emplace(seed, entry.location.line);
    if (is_new)
      seeds.push_back(seed);
    else
      report_.problem(entry.location, "seeds",
                      fmt::format("duplicate seed {}, first on line {}", seed, first->second));
  }
}

void ChangeReader::check_change(const Change& change, bool has_seeds) {
  if (change.key == "train.threads")
    report_.problem(change.location, change.key,
                    "runs of a sweep have one thread each; set how many run at a time with --jobs");
  if (change.key == "train.seed" && has_seeds)
    report_.problem(change.location, change.key, "seeds sets it already; remove one of them");
}

std::optional<OpenConfig> ChangeReader::load(const std::string& file, const SourceLocation& file_location,
                                             const Changes& changes) {
  try {
    ResolvedConfig config = load_config(file, texts(changes));
    const auto other = std::ranges::find(opened_, config.task, &OpenConfig::task);
    OpenConfig opened = open_data(std::move(config), {}, other == opened_.end() ? nullptr : other->source);
    if (other == opened_.end() && opened.source != nullptr) opened_.push_back(opened);
    return opened;
  } catch (const ConfigError& e) {
    for (const ConfigProblem& problem : e.problems()) {
      if (problem.location.argument == 0) {
        report_once(file_location, "config", problem_text(problem));
        continue;
      }
      const Change& change = changes[static_cast<std::size_t>(problem.location.argument) - 1];
      report_once(keys_.contains(change.key) ? change.location : change.key_location, change.key,
                  problem.rule);
    }
  }
  return std::nullopt;
}

void ChangeReader::report_once(const SourceLocation& location, const std::string& key,
                               const std::string& rule) {
  if (reported_.emplace(location.argument, location.line, location.column, key + ": " + rule).second)
    report_.problem(location, key, rule);
}

}  // namespace thimble::config
