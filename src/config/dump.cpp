// A config as YAML, as JSON, and what it may contain as JSON Schema.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/fields.h"
#include "config/overloaded.h"
#include "config/value.h"

namespace thimble {
namespace config {
namespace {

using Json = nlohmann::ordered_json;

void write_yaml(const Section& section, const std::string& indent, std::string& out) {
  for (const Field& field : section.fields) {
    if (!field.applies) continue;
    out += fmt::format("{}{}:", indent, field.key);
    if (const Section* inner = field.section()) {
      out += '\n';
      write_yaml(*inner, indent + "  ", out);
    } else {
      out += fmt::format(" {}\n", value_text(field));
    }
  }
}

Json json(const Field& field);

Json json(const Section& section) {
  Json out = Json::object();
  for (const Field& field : section.fields)
    if (field.applies) out[std::string(field.key)] = json(field);
  return out;
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
                        },
                        field.kind);
  out["description"] = field.help;
  if (field.section() == nullptr) out["default"] = json(field);
  return out;
}

Json schema(const Section& section) {
  Json properties = Json::object();
  for (const Field& field : section.fields) properties[std::string(field.key)] = schema(field);
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
}

}  // namespace
}  // namespace config

std::string to_yaml(const Config& values) {
  Config copy = values;
  std::string out;
  config::write_yaml(config::describe(copy), "", out);
  return out;
}

nlohmann::ordered_json to_json(const Config& values) {
  Config copy = values;
  return config::json(config::describe(copy));
}

nlohmann::ordered_json config_schema() {
  Config defaults;
  nlohmann::ordered_json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                {"title", "thimble config"}};
  out.update(config::schema(config::describe(defaults)));
  return out;
}

}  // namespace thimble
