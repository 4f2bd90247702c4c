#include "thimble/config/yaml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "thimble/core/error.h"
#include "thimble/core/file.h"
#include "thimble/core/suggest.h"
#include "thimble/core/text.h"

namespace thimble::config {
namespace {

// Builds the nodes of the first document.
class NodeBuilder : public YAML::EventHandler {
 public:
  using Style = YAML::EmitterStyle::value;

  NodeBuilder(const SourceLocation& source, Report& report) : source_(source), report_(report) {
    root_.location = location({});
  }

  bool passed() const { return passed_; }
  YamlNode& root() { return root_; }

  // yaml-cpp counts from 0; -1 is no position.
  SourceLocation location(const YAML::Mark& mark) const {
    if (source_.argument > 0) return source_;
    return {
        .source = source_.source, .line = std::max(mark.line, 0) + 1, .column = std::max(mark.column, 0) + 1};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "second YAML document; a file must have one");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "YAML aliases are not supported; write the value itself");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    YamlNode node{.location = location(mark)};
    // yaml-cpp places a missing value after the next line break.
    if (open_.empty())
      node.location = location({});
    else if (!open_.back().is_map())
      node.location = open_.back().location;
    else if (!at_key())
      node.location = open_.back().keys.back().location;
    add(std::move(node));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& text) override {
    add(node(YamlNode::Kind::text, mark, tag, text));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, Style) override {
    open_.push_back(node(YamlNode::Kind::list, mark, tag));
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, Style) override {
    open_.push_back(node(YamlNode::Kind::map, mark, tag));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  // yaml-cpp tags quoted text with "!", and what has no tag with "?".
  YamlNode node(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
                const std::string& text = {}) const {
    return {.kind = kind,
            .location = location(mark),
            .text = text,
            .quoted = tag == "!",
            .tag = tag.size() > 1 ? tag : ""};
  }

  bool at_key() const { return open_.back().keys.size() == open_.back().values.size(); }

  void add(YamlNode node) {
    if (open_.empty())
      root_ = std::move(node);
    else if (open_.back().is_map() && at_key())
      open_.back().keys.push_back(std::move(node));
    else
      open_.back().values.push_back(std::move(node));
  }

  void close() {
    YamlNode node = std::move(open_.back());
    open_.pop_back();
    add(std::move(node));
  }

  void refuse(const YAML::Mark& mark, std::string_view rule) {
    report_.problem(location(mark), "", rule);
    if (!open_.empty()) add({});  // keeps keys and values in pairs
    passed_ = false;
  }

  const SourceLocation& source_;
  Report& report_;
  YamlNode root_;
  std::vector<YamlNode> open_;  // unfinished lists and maps, each inside the one before
  int documents_ = 0;
  bool passed_ = true;
};

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
  if (!check_text(text, source, report)) return std::nullopt;
  NodeBuilder builder(source, report);
  const auto invalid = [&](const YAML::Mark& mark, std::string_view reason) {
    const std::string_view what = source.argument > 0 ? "invalid YAML value" : "invalid YAML";
    report.problem(builder.location(mark), "", fmt::format("{}: {}", what, reason));
    return std::nullopt;
  };
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    // After a stray comma, yaml-cpp would return documents without end.
    while (builder.passed() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::DeepRecursion& e) {  // whose own message is "bad file"
    return invalid(e.mark, "nested too deeply");
  } catch (const YAML::Exception& e) {
    return invalid(e.mark, e.msg);
  }
  if (!builder.passed()) return std::nullopt;
  return std::move(builder.root());
}

std::string found(const YamlNode& node) {
  constexpr std::size_t kMaxBytes = 40;
  if (node.is_map()) return "a map";
  if (node.is_list()) return "a list";
  if (!node.is_text()) return "empty";
  const std::string text = shortened(node.text, kMaxBytes);
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
  const bool is_empty = !node.is_text() && node.values.empty();
  report.problem(node.location, key,
                 fmt::format("must be {}, not {}", rule, is_empty ? "empty" : found(node)));
}

void unknown_key(const YamlNode& key, std::span<const std::string_view> keys, Report& report) {
  const std::string guess = did_you_mean(key.text, keys);
  report.problem(
      key.location, key.text,
      "unknown key" + (guess.empty() ? fmt::format("; must be one of {}", fmt::join(keys, ", ")) : guess));
}

}  // namespace thimble::config
