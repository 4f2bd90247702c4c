// A config as YAML, as JSON, and what it may contain as JSON Schema.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/dump.h"
#include "config/overloaded.h"
#include "config/value.h"

namespace thimble {
namespace config {
namespace {

using Json = nlohmann::ordered_json;

// A dump leaves out what has no meaning beside the other values, and paths that are none.
bool is_shown(const Field& field) {
  return field.applies && (field.section() != nullptr || !value_text(field).empty());
}

void write_yaml(const Section& section, const std::string& indent, std::string& out) {
  for (const Field& field : section.fields) {
    if (!is_shown(field)) continue;
    out += fmt::format("{}{}:", indent, field.key);
    if (const Section* inner = field.section()) {
      out += '\n';
      write_yaml(*inner, indent + "  ", out);
    } else {
      out += fmt::format(" {}\n", value_text(field));
    }
  }
}

Json json(const Field& field) {
  return std::visit(Overloaded{
                        [](const Section& rule) { return json(rule); },
                        [&](const Choice&) { return Json(value_text(field)); },
                        [](const auto& rule) { return Json(*rule.value); },
                    },
                    field.kind);
}

Json schema(const Section& section);

Json schema(const Field& field) {
  Json out = std::visit(Overloaded{
                            [](const Section& rule) { return schema(rule); },
                            [](const Integer& rule) {
                              return Json{{"type", "integer"}, {"minimum", rule.low}, {"maximum", rule.high}};
                            },
                            [](const Seed&) {
                              return Json{{"type", "integer"},
                                          {"minimum", 0},
                                          {"maximum", std::numeric_limits<std::uint64_t>::max()}};
                            },
                            [](const Real& rule) {
                              return Json{{"type", "number"},
                                          {rule.low_open ? "exclusiveMinimum" : "minimum", rule.low},
                                          {rule.high_open ? "exclusiveMaximum" : "maximum", rule.high}};
                            },
                            [](const Choice& rule) {
                              return Json{{"enum", rule.names}};
                            },
                            [](const Boolean&) {
                              return Json{{"type", "boolean"}};
                            },
                            [](const Path&) {
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

std::string yaml(const Section& section) {
  std::string out;
  write_yaml(section, "", out);
  return out;
}

Json json(const Section& section) {
  Json out = Json::object();
  for (const Field& field : section.fields)
    if (is_shown(field)) out[std::string(field.key)] = json(field);
  return out;
}

}  // namespace config

std::string to_yaml(const Config& values) {
  Config copy = values;
  return config::yaml(config::describe(copy));
}

nlohmann::ordered_json to_json(const Config& values) {
  Config copy = values;
  return config::json(config::describe(copy));
}

nlohmann::ordered_json config_schema() {
  Config defaults;
  nlohmann::ordered_json out = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                                {"title", "thimble config"}};
  out.update(config::schema(config::describe(defaults)));
  return out;
}

}  // namespace thimble
