// YAML is parsed by the library of the page, yaml.js, which returns a tree of nodes as JSON.
#include "train/config/yaml_parser.h"

#include <emscripten.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "thimble/train/json.h"

// Returns {"problem": {"line", "column", "message", "syntax"}} or a node: {"kind", "line", "column", "text"?,
// "quoted"?, "tag"?, "keys"?, "values"?}. The caller frees the text.
EM_JS(char*, lab_parse_yaml, (const char* text), {
  const json = Module['parseYaml'](UTF8ToString(text));
  const bytes = lengthBytesUTF8(json) + 1;
  const copy = _malloc(bytes);
  stringToUTF8(json, copy, bytes);
  return copy;
});

namespace thimble::config {
namespace {

YamlNode::Kind kind_of(std::string_view name) {
  if (name == "text") return YamlNode::Kind::text;
  if (name == "list") return YamlNode::Kind::list;
  return name == "map" ? YamlNode::Kind::map : YamlNode::Kind::empty;
}

SourceLocation location_of(const Json& json, const SourceLocation& source) {
  if (source.argument > 0) return source;
  return {
      .source = source.source, .line = json.at("line").get<int>(), .column = json.at("column").get<int>()};
}

YamlNode node_of(const Json& json, const SourceLocation& source) {
  YamlNode node{.kind = kind_of(json.at("kind").get<std::string>()),
                .location = location_of(json, source),
                .text = json.value("text", ""),
                .quoted = json.value("quoted", false),
                .tag = json.value("tag", "")};
  for (const Json& key : json.value("keys", Json::array())) node.keys.push_back(node_of(key, source));
  for (const Json& value : json.value("values", Json::array())) node.values.push_back(node_of(value, source));
  return node;
}

}  // namespace

std::optional<YamlNode> parse_nodes(const std::string& text, const SourceLocation& source, Report& report) {
  const std::unique_ptr<char, decltype(&std::free)> answer(lab_parse_yaml(text.c_str()), std::free);
  const Json tree = parse_json(answer.get());
  if (!tree.contains("problem")) return node_of(tree, source);
  const Json& problem = tree["problem"];
  const std::string_view syntax = source.argument > 0 ? "invalid YAML value: " : "invalid YAML: ";
  report.problem(location_of(problem, source), "",
                 fmt::format("{}{}", problem.at("syntax").get<bool>() ? syntax : "",
                             problem.at("message").get<std::string>()));
  return std::nullopt;
}

}  // namespace thimble::config
