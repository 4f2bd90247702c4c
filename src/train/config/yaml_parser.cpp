#include "train/config/yaml_parser.h"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>

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
                const std::string& text = {}) {
    if (tag.size() > 1)
      report_.problem(location(mark), "",
                      fmt::format("YAML tags such as {} are not supported; write the plain value", tag));
    return {.kind = kind, .location = location(mark), .text = text, .quoted = tag == "!"};
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

}  // namespace

std::optional<YamlNode> parse_nodes(const std::string& text, const SourceLocation& source, Report& report) {
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

}  // namespace thimble::config
