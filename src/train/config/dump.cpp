// Writes a config as YAML and JSON, and the rules for configs as JSON Schema.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "thimble/train/json.h"
#include "train/config/differences.h"
#include "train/config/dump.h"
#include "train/config/value.h"
#include "train/files/text/text.h"

namespace thimble {
namespace config {
namespace {

// Returns whether a dump has the field: not if other values leave it without effect, nor an empty path.
bool is_shown(const Field& field, bool all) {
  return field.applies && (field.section() != nullptr ||
                           (!value_text(field).empty() && (all || value_text(field) != field.newer)));
}

// Returns the origin, without the folder if it is longer than `room` characters.
std::string origin_text(const SourceLocation& origin, std::size_t room) {
  if (origin.argument > 0) return "command line";
  const std::string name = is_line(origin.source) ? origin.source : "a config file";
  std::string text = fmt::format("{}:{}", name, origin.line);
  if (text.size() <= room) return text;
  return fmt::format("{}:{}", std::filesystem::path(name).filename().string(), origin.line);
}

Json json(const Field& field, bool all = true) {
  return std::visit(Overloaded{
                        [&](const Section& rule) { return json(rule, all); },
                        [](const Base&) { return Json(); },
                        [](const Choice& rule) { return Json(rule.get(rule.value, rule)); },
                        [&](const Integer& rule) {
                          return *rule.value == kAll ? Json(value_text(field)) : Json(*rule.value);
                        },
                        [](const auto& rule) { return Json(*rule.value); },
                    },
                    field.kind);
}

Json schema(const Section& section);

Json schema(const Field& field) {
  Json out = std::visit(
      Overloaded{
          [](const Section& rule) { return schema(rule); },
          []<class T>(const Whole<T>& rule) {
            Json number{{"type", "integer"}, {"minimum", rule.low}, {"maximum", rule.high}};
            if (rule.keyword.empty()) return number;
            number["type"] = {"integer", "string"};
            number["pattern"] = fmt::format("^{}$", rule.keyword);
            return number;
          },
          [](const Real& rule) {
            return Json{{"type", "number"},
                        {rule.low_open ? "exclusiveMinimum" : "minimum", rule.low},
                        {rule.high_open ? "exclusiveMaximum" : "maximum", rule.high}};
          },
          [](const Choice& rule) {
            const std::string name = fmt::format("({})", fmt::join(rule.names, "|"));
            return rule.is_list ? Json{{"type", "string"}, {"pattern", fmt::format("^{0}(,{0})*$", name)}}
                                : Json{{"enum", rule.names}};
          },
          [](const Boolean&) {
            return Json{{"type", "boolean"}};
          },
          [](const Text& rule) {
            return Json{{"type", {"string", "integer"}}, {"minLength", rule.may_be_empty ? 0 : 1}};
          },
          [](const auto&) {  // Path, Base
            return Json{{"type", "string"}, {"minLength", 1}};
          },
      },
      field.kind);
  out["description"] = field.help;
  if (field.section() == nullptr && !value_text(field).empty()) out["default"] = json(field);
  return out;
}

Json schema(const Section& section) {
  Json properties = Json::object();
  for (const Field& field : section.fields) properties[std::string(field.key)] = schema(field);
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
}

}  // namespace

std::string yaml(const Section& section, const Origins* origins) {
  constexpr std::size_t kMaxWidth = 80, kMaxValueWidth = 40;
  std::vector<std::pair<Named, std::string>> lines;
  std::size_t column = 0;
  for (const Named& named : flatten(section)) {
    if (!is_shown(*named.field, origins != nullptr)) continue;
    const auto indent = 2 * static_cast<std::size_t>(std::ranges::count(named.path, '.'));
    std::string text = fmt::format("{}{}:", std::string(indent, ' '), named.field->key);
    if (named.field->section() == nullptr) text += ' ' + value_text(*named.field);
    if (text.size() <= kMaxValueWidth) column = std::max(column, text.size());
    lines.emplace_back(named, text);
  }
  std::string out;
  for (auto& [named, text] : lines) {
    if (named.field->section() == nullptr && origins != nullptr) {
      text.resize(std::max(column, text.size()), ' ');
      text += "  # ";
      const auto origin = origins->find(named.path);
      const std::size_t room = kMaxWidth - std::min(kMaxWidth, text.size());
      text += origin == origins->end() ? "default" : origin_text(origin->second, room);
    }
    out += text + '\n';
  }
  return out;
}

Json json(const Section& section, bool all) {
  Json out = Json::object();
  for (const Field& field : section.fields)
    if (is_shown(field, all)) out[std::string(field.key)] = json(field, all);
  return out;
}

}  // namespace config

std::string to_yaml(const Config& values) {
  Config copy = values;
  return config::yaml(config::describe(copy));
}

std::string to_annotated_yaml(const ResolvedConfig& resolved) {
  Config copy = resolved;
  return config::yaml(config::describe(copy), &resolved.origins);
}

Json to_json(const Config& values) {
  Config copy = values;
  return config::json(config::describe(copy));
}

Json hashed_values(const Config& values) {
  Config copy = values;
  return config::json(config::describe(copy), false);
}

Json config_schema() {
  Config defaults;
  Json out = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "thimble config"}};
  out.update(config::schema(config::describe(defaults)));
  return out;
}

}  // namespace thimble
