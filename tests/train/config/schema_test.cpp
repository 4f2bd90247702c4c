// The JSON Schema, applied to files as an editor does.
#include <cmath>
#include <regex>

#include "catch.h"
#include "experiments.h"
#include "thimble/train/config.h"
#include "thimble/train/json.h"
#include "train/config/yaml.h"

using namespace thimble;

namespace {

// Returns the values of a file with the types of YAML's core schema.
Json to_json(const config::YamlNode& node) {
  if (node.is_list()) return Json::array();  // no config has one that is right
  if (node.is_map()) {
    Json out = Json::object();
    for (std::size_t i = 0; i < node.keys.size(); ++i) out[node.keys[i].text] = to_json(node.values[i]);
    return out;
  }
  const Json value = node.quoted ? Json(node.text) : Json::parse(node.text, nullptr, false);
  return value.is_discarded() ? Json(node.text) : value;
}

Json parse_text(const std::string& text) {
  config::Report report("t.yaml");
  const auto node = parse_yaml(text, report.start_of_file(), report);
  report.finish();
  return to_json(*node);
}

bool has_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  return type == "integer" &&
         (value.is_number_integer() || (value.is_number() && value == std::floor(value.get<double>())));
}

// Applies the keywords of draft-07 that the schema uses; returns the violation, or "".
std::string invalid(const Json& value, const Json& schema, const std::string& path = "") {
  const auto wrong = [&](const std::string& rule) { return path + ": " + rule; };
  for (const auto& [word, rule] : schema.items()) {
    if (word == "type") {
      const Json types = rule.is_array() ? rule : Json::array({rule});
      if (std::ranges::none_of(types, [&](const Json& type) { return has_type(value, type); }))
        return wrong("not of type " + types[0].get<std::string>());
    } else if (word == "enum") {
      if (std::find(rule.begin(), rule.end(), value) == rule.end())
        return wrong("not one of " + json_text(rule));
    } else if (word == "pattern") {
      if (value.is_string() &&
          !std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>())))
        return wrong("does not match " + json_text(rule));
    } else if (word == "minimum" || word == "exclusiveMinimum") {
      if (value.is_number() && (value < rule || (word != "minimum" && value == rule)))
        return wrong("below " + json_text(rule));
    } else if (word == "maximum" || word == "exclusiveMaximum") {
      if (value.is_number() && (value > rule || (word != "maximum" && value == rule)))
        return wrong("above " + json_text(rule));
    } else if (word == "minLength") {
      if (value.is_string() && value.get<std::string>().size() < rule) return wrong("too short");
    } else if (word == "additionalProperties") {
      for (const auto& [key, below] : value.items())
        if (!schema.at("properties").contains(key)) return wrong("no property " + key);
    } else if (word == "properties") {
      for (const auto& [key, below] : value.items())
        if (const std::string inner = rule.contains(key) ? invalid(below, rule[key], path + "/" + key) : "";
            !inner.empty())
          return inner;
    } else if (word != "$schema" && word != "title" && word != "description" && word != "default") {
      return wrong("a word that draft-07 has no rule for here: " + word);
    }
  }
  return "";
}

}  // namespace

TEST_CASE("every config in configs/ satisfies the schema", "[config]") {
  const Json schema = config_schema();
  for (const std::string& file : experiments()) {
    INFO(file);
    CHECK(invalid(parse_text(config::read_config_file(file)), schema).empty());
  }
}

TEST_CASE("a dump satisfies the schema", "[config]") {
  CHECK(invalid(to_json(Config{}), config_schema()).empty());
  CHECK(invalid(parse_text(to_yaml(Config{})), config_schema()).empty());
}

TEST_CASE("the schema refuses what the reader refuses", "[config]") {
  const Json schema = config_schema();
  for (
      const auto& [text, wrong] : {
          std::pair{"modle: {}", ": no property modle"},
          {"model: {head: 2}", "/model: no property head"},
          {"model: 3", "/model: not of type object"},
          {"train: {steps: 1.5}", "/train/steps: not of type integer"},
          {"train: {steps: '7'}", "/train/steps: not of type integer"},
          {"train: {steps: 0}", "/train/steps: below 1"},
          {"train: {batch: 65537}", "/train/batch: above 65536"},
          {"model: {dropout: 1}", "/model/dropout: above 1.0"},
          {"train: {optimizer: {lr: 0}}", "/train/optimizer/lr: below 0.0"},
          {"train: {precision: half}", "/train/precision: not one of [\"float32\",\"float64\"]"},
          {"train: {checkpoint_series: yes}", "/train/checkpoint_series: not of type boolean"},
          {"model: {attention: {score: euclidean}}",
           "/model/attention/score: not one of [\"scaled_dot\",\"dot\",\"general\",\"additive\",\"cosine\",\"linear\",\"none\"]"},
          {"model: {attention: {kv_heads: -1}}", "/model/attention/kv_heads: below 0"},
          {"model: {attention: {tie_query_key: 1}}", "/model/attention/tie_query_key: not of type boolean"},
          {"task: {file: ''}", "/task/file: too short"},
          {"base: [a]", "/base: not of type string"},
      })
    CHECK(invalid(parse_text(text), schema) == wrong);
  CHECK(invalid(parse_text("base: a.yaml\ntask: {file: a.tsv}\ntrain: {checkpoint_series: true}"), schema)
            .empty());
}
