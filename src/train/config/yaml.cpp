#include "train/config/yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/config/yaml_parser.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble::config {
namespace {

// Reports the first byte that is not allowed: invalid UTF-8, a control character, which yaml-cpp may take for
// the end of the file, or a tab in indentation, for which its message is hard to understand.
bool check_text(std::string_view text, SourceLocation at, Report& report) {
  bool indentation = true;
  at.line = at.column = 1;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t size = character_size(text.substr(i));
    std::string wrong;
    if (size == 0) wrong = "invalid UTF-8; save the file as UTF-8";
    if (is_control(c) && c != '\n' && c != '\r' && c != '\t')
      wrong = fmt::format("control character 0x{:02x}; delete it", c);
    if (c == '\t' && indentation) wrong = "tab in the indentation; use spaces";
    if (!wrong.empty()) {
      report.problem(at, "", wrong);
      return false;
    }
    indentation = c == '\n' || (indentation && c == ' ');
    at.column = c == '\n' ? 1 : at.column + 1;
    at.line += c == '\n';
    i += size;
  }
  return true;
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto found = std::ranges::find(keys, key, &YamlNode::text);
  return found == keys.end() ? nullptr : &values[static_cast<std::size_t>(found - keys.begin())];
}

std::string read_config_file(const std::string& path) {
  constexpr std::uintmax_t kMaxBytes = 1 << 20;
  require<ConfigError>(utf8_size(path) == path.size(), "{}: the path is not UTF-8 text; rename the file",
                       printable(path));
  try {
    return read_file(path, kMaxBytes);
  } catch (const FileError& e) {
    throw ConfigError(e.what());
  }
}

std::optional<YamlNode> parse_yaml(const std::string& text, const SourceLocation& source, Report& report) {
  return check_text(text, source, report) ? parse_nodes(text, source, report) : std::nullopt;
}

std::string found(const YamlNode& node) {
  constexpr std::size_t kMaxBytes = 40;
  if (node.text.empty() && !node.quoted && node.values.empty()) return "empty";
  if (!node.is_text()) return node.is_map() ? "a map" : "a list";
  const std::string text = printable(shortened(node.text, kMaxBytes));
  return node.quoted ? '"' + text + '"' : text;
}

void for_entries(const YamlNode& map, const std::string& parent, Report& report,
                 const std::function<void(const YamlNode& key, const YamlNode& value)>& f) {
  std::map<std::string, int> lines;  // of the keys so far
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const YamlNode& key = map.keys[i];
    if (!key.is_text()) {
      report.problem(key.location, parent + "?", fmt::format("a key must be a name, not {}", found(key)));
      continue;
    }
    const auto [first, is_new] = lines.emplace(key.text, key.location.line);
    if (is_new)
      f(key, map.values[i]);
    else
      report.problem(key.location, parent + key.text,
                     fmt::format("duplicate key, first on line {}", first->second));
  }
}

void must_be(const YamlNode& node, const std::string& key, std::string_view rule, Report& report) {
  report.problem(node.location, key, fmt::format("must be {}, not {}", rule, found(node)));
}

bool check_map(const YamlNode& map, const std::string& key, std::span<const std::string_view> keys,
               Report& report, const std::string& parent) {
  if (!map.is_filled(YamlNode::Kind::map)) {
    must_be(map, key, fmt::format("a map with {}", fmt::join(keys, ", ")), report);
    return false;
  }
  for_entries(map, parent, report, [&](const YamlNode& name, const YamlNode&) {
    if (std::ranges::find(keys, name.text) == keys.end()) unknown_key(name, keys, report);
  });
  return true;
}

void unknown_key(const YamlNode& key, std::span<const std::string_view> keys, Report& report) {
  const std::string guess = did_you_mean(key.text, keys);
  report.problem(
      key.location, key.text,
      "unknown key" + (guess.empty() ? fmt::format("; must be one of {}", fmt::join(keys, ", ")) : guess));
}

}  // namespace thimble::config
