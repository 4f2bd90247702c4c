// A config as YAML, JSON and JSON Schema.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <regex>

#include "catch.h"
#include "config_problems.h"
#include "thimble/train/json.h"
#include "train/config/fields.h"
#include "train/config/value.h"
#include "train/config/yaml.h"

using namespace thimble;

namespace {

// Calls visit(path, schema of the value) for every value of a config.
void each_value(const Json& schema, const std::string& prefix,
                const std::function<void(const std::string&, const Json&)>& visit) {
  CHECK((schema.at("type") == "object" && schema.at("additionalProperties") == false));
  for (const auto& [key, property] : schema.at("properties").items()) {
    if (property.contains("properties"))
      each_value(property, prefix + key + ".", visit);
    else
      visit(prefix + key, property);
  }
}

Json::json_pointer pointer(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return Json::json_pointer("/" + path);
}

// Returns the rule of the key that setting it to the value breaks, or "".
std::string broken_rule(const std::string& path, const std::string& value) {
  for (const ConfigProblem& problem : problems("{}", {path + "=" + value}))
    if (problem.key == path && problem.rule.starts_with("must be ")) return problem.rule;
  return "";
}
bool refused(const std::string& path, const std::string& value) { return !broken_rule(path, value).empty(); }

bool matches(const Json& property, const std::string& text) {
  return std::regex_search(text, std::regex(property.at("pattern").get<std::string>()));
}

}  // namespace

TEST_CASE("the YAML of a config gives the same config back", "[config]") {
  Config config;
  config.task = {.name = "sort", .symbols = 3, .length = 6, .min_length = 4};
  config.data.train = 0;
  config.model.d_model = 48;
  config.model.norm = NormOrder::pre;
  config.model.norm_type = NormType::rms;
  config.model.gated = true;
  config.model.activation = Activation::gelu_tanh;
  config.model.positions = Positions::none;
  config.model.attention = {.mask = Mask::causal,
                            .dropout = 0.1 + 0.2,
                            .score = Score::dot,
                            .combine = Combine::sum,
                            .tie_query_key = true,
                            .d_key = 5,
                            .d_value = 7};
  config.model.output.per = OutputPer::next;
  config.train.seed = std::numeric_limits<std::uint64_t>::max();
  config.train.precision = Precision::float64;
  config.train.optimizer = {
      .name = OptimizerKind::adamw, .lr = 1.0 / 3, .epsilon = 5e-324, .weight_decay = 100};
  config.train.schedule.name = ScheduleKind::inverse_sqrt;
  config.train.label_smoothing = std::nextafter(1.0, 0.0);
  config.train.clip_norm = 1e6;
  config.train.evaluate_every = 7;
  config.train.target = {.accuracy = 1, .loss = 0.5};
  config.train.checkpoint_series = config.train.log_heads = true;
  const Config back = parse_config(to_yaml(config), "t.yaml");
  CHECK(to_json(back) == to_json(config));
  CHECK(to_yaml(back) == to_yaml(config));
  CHECK(back.model.attention.dropout == 0.1 + 0.2);
  CHECK(back.train.optimizer.epsilon == 5e-324);
  CHECK(back.train.label_smoothing == std::nextafter(1.0, 0.0));
  CHECK(back.train.optimizer.lr == 1.0 / 3);
  CHECK(back.train.seed == std::numeric_limits<std::uint64_t>::max());
  CHECK(back.model.output.per == OutputPer::next);
}

TEST_CASE("the YAML of the defaults", "[config]") {
  const std::string yaml = to_yaml(Config{});
  CHECK_THAT(yaml,
             StartsWith("task:\n  name: reverse\n  symbols: 10\n  length: 16\n  min_length: 0\ndata:\n"));
  CHECK_THAT(yaml,
             ContainsSubstring("\n  attention:\n    mask: none\n    dropout: 0.0\n    score: scaled_dot\n"));
  CHECK_THAT(yaml, ContainsSubstring("\n  optimizer:\n    name: adam\n    lr: 0.001\n"));
}

TEST_CASE("every number of the YAML has the type that YAML 1.1 reads", "[config]") {
  const std::vector<std::pair<double, std::string>> numbers = {
      {0, "0.0"},           {1, "1.0"},
      {0.001, "0.001"},     {1e-4, "0.0001"},
      {3e-5, "3.0e-05"},    {1e-8, "1.0e-08"},
      {1.5e-5, "1.5e-05"},  {5e-324, "5.0e-324"},
      {1e-100, "1.0e-100"}, {0.1 + 0.2, "0.30000000000000004"},
      {100, "100.0"}};
  for (const auto& [number, text] : numbers) {
    Config config;
    config.model.embedding_std = number;
    CHECK_THAT(to_yaml(config), ContainsSubstring("\n  embedding_std: " + text + "\n"));
    CHECK(parse_config(to_yaml(config), "t.yaml").model.embedding_std == number);
  }
  for (const char* old : {"3e-05", "1e-08", "0", "1"})  // as 0.2 wrote them
    CHECK(parse_config(fmt::format("model: {{embedding_std: {}}}", old), "t.yaml").model.embedding_std ==
          std::stod(old));
}

TEST_CASE("text of the YAML stays text for readers of YAML 1.1 and 1.2", "[config]") {
  for (const std::string text : {"reverse", "none", "float32", "/data/own_data-2.tsv", "e5", "_x"})
    CHECK(config::yaml_text(text) == text);
  for (const std::string text :
       {"",       "~",      "null",   "Null",   "yes",    "No",         "on",        "OFF",    "y",    "N",
        "true",   "False",  "0",      "-1",     "1_000",  "0x10",       "0o17",      "010",    "1:30", "1.5",
        "3e-05",  ".5",     ".inf",   ".NaN",   "+1",     "2001-01-01", "a: b",      "#",      "a #b", "- a",
        "=",      "<<",     "*a",     "&a",     "!a",     "[",          "{",         "%",      "@",    "`",
        "'",      "|",      ">",      "?",      ",",      " a",         "a ",        "\u00e9", "a\\b", "a\"b",
        "\u0085", "\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff",     "\U0001f600"}) {
    const std::string yaml = config::yaml_text(text);
    CAPTURE(text, yaml);
    CHECK((yaml.front() == '"' && yaml.back() == '"'));
    config::Report report("t.yaml");
    const auto node = config::parse_yaml("key: " + yaml, report.start_of_file(), report);
    CHECK((node && node->values[0].quoted && node->values[0].text == text));
  }
  CHECK(config::yaml_text("a\u0085\u2028\u2029\ufeff\ufffe\uffff") ==
        R"("a\u0085\u2028\u2029\ufeff\ufffe\uffff")");
}

TEST_CASE("JSON has every value with its type", "[config]") {
  Config config;
  config.train.seed = std::numeric_limits<std::uint64_t>::max();
  const Json json = to_json(config);
  CHECK(json.at("task").at("name") == "reverse");
  CHECK(json.at("model").at("attention").at("mask") == "none");
  CHECK(json.at("train").at("optimizer").at("lr") == 1e-3);
  CHECK(json.at("train").at("steps").is_number_integer());
  CHECK(json.at("train").at("clip_norm").is_number_float());
  CHECK(json.at("train").at("seed") == std::numeric_limits<std::uint64_t>::max());
  CHECK(json.begin().key() == "task");  // the order of the field lists, not of the alphabet
}

TEST_CASE("the schema has a help, a default and a rule for every value", "[config]") {
  const Json schema = config_schema();
  CHECK(schema.at("$schema") == "http://json-schema.org/draft-07/schema#");
  int values = 0;
  each_value(schema, "", [&](const std::string& path, const Json& property) {
    INFO(path);
    ++values;
    CHECK_FALSE(property.at("description").get<std::string>().empty());
    // A dump omits keys that the default task does not read.
    if (to_json(Config{}).contains(pointer(path)))
      CHECK(property.at("default") == to_json(Config{}).at(pointer(path)));
    else
      CHECK((path == "base" || path.starts_with("task.")));
    CHECK((property.contains("enum") || property.contains("type")));
  });
  Config config;
  const config::Section root = config::describe(config);
  const auto is_value = [](const config::Named& named) { return named.field->section() == nullptr; };
  CHECK(values == std::ranges::count_if(config::flatten(root), is_value));
}

TEST_CASE("the rules of the schema are those of the reader", "[config]") {
  each_value(config_schema(), "", [](const std::string& path, const Json& property) {
    INFO(path);
    if (property.contains("enum")) {
      for (const auto& name : property["enum"]) CHECK_FALSE(refused(path, name));
      const auto names = property["enum"].get<std::vector<std::string>>();
      CHECK_THAT(broken_rule(path, "zzz"),
                 StartsWith(fmt::format("must be one of {}, not zzz", fmt::join(names, ", "))));
      return;
    }
    if (property.at("type") == "boolean") {
      CHECK_FALSE((refused(path, "true") || refused(path, "false")));
      CHECK(refused(path, "1"));
      return;
    }
    if (path == "base") return;         // stands in files only
    if (path == "task.input_tokens") {  // a list of names
      for (const char* value :
           {"words", "characters,field,words", "spaces", "zzz", "words,", "words,zzz", "bytes"})
        CHECK(matches(property, value) != refused(path, value));
      return;
    }
    if (property.at("type") == "string") {
      CHECK_FALSE(refused(path, "a"));
      CHECK(refused(path, "''"));
      return;
    }
    if (property.contains("minLength")) {  // any text
      CHECK_FALSE((refused(path, "a,b") || refused(path, "0") || refused(path, "a: b")));
      CHECK(refused(path, "''") == (property["minLength"] == 1));
      return;
    }
    if (property.contains("pattern"))
      for (const char* value : {"all", "alls"}) CHECK(matches(property, value) != refused(path, value));
    const bool integer = property.at("type") == "integer" || property.contains("pattern");
    CHECK(refused(path, integer ? "1.5" : "many"));
    for (const auto& [bound, beyond] : {std::pair("minimum", -1), {"maximum", 1}}) {
      if (!property.contains(bound)) continue;
      CHECK_FALSE(refused(path, json_text(property[bound])));
      const auto limit = property[bound].get<double>();
      if (limit < 1e18)
        CHECK(refused(path, integer ? fmt::format("{:.0f}", limit + beyond)
                                    : fmt::format("{}", std::nextafter(limit, beyond * HUGE_VAL))));
    }
    for (const char* bound : {"exclusiveMinimum", "exclusiveMaximum"})
      if (property.contains(bound)) CHECK(refused(path, json_text(property[bound])));
    CHECK((property.contains("minimum") || property.contains("exclusiveMinimum")));
    CHECK((property.contains("maximum") || property.contains("exclusiveMaximum")));
    CHECK(refused(path, "-1"));
    CHECK(refused(path, "18446744073709551616"));
  });
}
