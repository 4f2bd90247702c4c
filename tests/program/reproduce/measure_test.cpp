// Numbers by their paths, and limits.
#include "program/reproduce/measure.h"

#include <cmath>
#include <limits>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"

using namespace thimble;

namespace {

const Json kReport = parse_json(R"({
  "test": {"accuracy": 0.75, "leak": null, "solved": true, "name": "reverse"},
  "heads": [{"layer": 0, "label": "mirror", "scores": {"a": {"value": 0.5}, "b": {"value": 0.25}}},
            {"layer": 1, "label": "none", "scores": {"a": {"value": 0.125}, "b": {"value": null}}},
            {"layer": 1, "label": "mirror", "scores": {"a": {"value": 1}, "b": {"value": 0.0625}}}]})");

ExperimentValue value(const std::string& path, Take take = Take::only) {
  return {.name = "x", .run = "a", .of = "inspect", .path = path, .where = {}, .take = take, .otherwise = {}};
}

Filter equal(const std::string& path, const std::string& text) { return {path, text, {}}; }
Filter within(const std::string& path, const Bound& bound) { return {path, "", bound}; }

std::string error_of(const ExperimentValue& v) {
  try {
    measure(kReport, v, {});
  } catch (const DataError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a path leads through keys, indices and anything", "[reproduce]") {
  CHECK(measure(kReport, value("test.accuracy"), {}) == 0.75);
  CHECK(measure(kReport, value("test.solved"), {}) == 1);
  CHECK(measure(kReport, value("heads.2.scores.b.value"), {}) == 0.0625);
  CHECK(find_all(kReport, "heads.*.scores.*.value").size() == 6);
  CHECK(find_all(kReport, "").size() == 1);
  CHECK(find_all(kReport, "heads.3").empty());
  CHECK(find_all(kReport, "heads.layer").empty());
  CHECK(find_all(kReport, "test.accuracy.*").empty());
}

TEST_CASE("`take` reduces several numbers", "[reproduce]") {
  const std::string path = "heads.*.scores.a.value";
  CHECK(measure(kReport, value(path, Take::first), {}) == 0.5);
  CHECK(measure(kReport, value(path, Take::last), {}) == 1);
  CHECK(measure(kReport, value(path, Take::min), {}) == 0.125);
  CHECK(measure(kReport, value(path, Take::max), {}) == 1);
  CHECK(measure(kReport, value(path, Take::mean), {}) == 1.625 / 3);
  CHECK(measure(kReport, value("heads.*.label", Take::count), {}) == 3);
  CHECK(measure(kReport, value("heads.*.scores.b.value", Take::mean), {}) == 0.3125 / 2);  // null is nothing
}

TEST_CASE("`where` filters the matches of the first *", "[reproduce]") {
  ExperimentValue v = value("heads.*.scores.a.value");
  v.where = {equal("layer", "0")};
  CHECK(measure(kReport, v, {}) == 0.5);
  v.where = {equal("layer", "1"), equal("label", "mirror")};
  CHECK(measure(kReport, v, {}) == 1);
  v.where = {within("scores.a.value", {.relation = Bound::below, .number = 0, .value = "limit", .by = 0.25})};
  CHECK(measure(kReport, v, {{"limit", 0.5}}) == 0.125);
  v.where = {within("scores.*.value", {.relation = Bound::at_most, .number = 0.0625})};
  CHECK(measure(kReport, v, {}) == 1);
  const Json lines = parse_json(R"([{"step": 1, "loss": 4}, {"step": 2, "loss": 3}])");
  ExperimentValue line = value("*.loss");
  line.where = {equal("step", "2")};
  CHECK(measure(lines, line, {}) == 3);
  ExperimentValue item = value("*", Take::count);
  item.where = {equal("step", "1")};
  CHECK(measure(lines, item, {}) == 1);
}

TEST_CASE("a value without a match is an error, or `otherwise`", "[reproduce]") {
  CHECK(error_of(value("test.acuracy")) == "x: test.acuracy of inspect matches nothing");
  CHECK(error_of(value("test.leak")) == "x: test.leak of inspect matches nothing");
  CHECK(error_of(value("test.name")) == "x: test.name of inspect is \"reverse\", not a number");
  CHECK(error_of(value("test")) == "x: test of inspect is a list or map, not a number");
  ExperimentValue many = value("heads.*.scores.a.value");
  many.where = {equal("layer", "1")};
  CHECK(error_of(many) ==
        "x: heads.*.scores.a.value of inspect matches 2 numbers; choose with take or where");
  ExperimentValue never = value("heads.*.scores.a.value", Take::first);
  never.where = {equal("layer", "2")};
  never.otherwise = 9;
  CHECK(measure(kReport, never, {}) == 9);
  CHECK(measure(kReport, value("nothing", Take::count), {}) == 0);
}

TEST_CASE("a bound moves by its margin to where it is harder", "[reproduce]") {
  const auto at = [](Bound::Relation relation, double x, double by = 0) {
    return holds({.relation = relation, .number = 2, .value = {}, .by = by}, x, {});
  };
  CHECK(at(Bound::at_least, 2));
  CHECK_FALSE(at(Bound::above, 2));
  CHECK(at(Bound::at_most, 2));
  CHECK_FALSE(at(Bound::below, 2));
  CHECK(at(Bound::at_least, 2.5, 0.5));
  CHECK_FALSE(at(Bound::at_least, 2.25, 0.5));
  CHECK(at(Bound::above, 1.75, -0.5));
  CHECK(at(Bound::at_most, 1.5, 0.5));
  CHECK_FALSE(at(Bound::at_most, 1.75, 0.5));
  CHECK(at(Bound::below, 2.25, -0.5));
  CHECK_FALSE(at(Bound::below, 1.5, 0.5));
  const Bound other{.relation = Bound::above, .number = 0, .value = "b", .by = 0};
  CHECK(holds(other, 2, {{"b", 1}}));
  CHECK_FALSE(holds(other, 1, {{"b", 1}}));
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(holds(other, unknown, {{"b", 1}}));
  CHECK_FALSE(holds(other, 2, {{"b", unknown}}));
}

TEST_CASE("conditions are written as people read them", "[reproduce]") {
  CHECK(describe({"a", {.relation = Bound::at_least, .number = 0.99}}) == "a >= 0.99");
  CHECK(describe({"a", {.relation = Bound::above, .number = 0, .value = "b", .by = 0.1}}) == "a > b + 0.1");
  CHECK(describe({"a", {.relation = Bound::at_least, .number = 0, .value = "b", .by = -0.1}}) ==
        "a >= b - 0.1");
  CHECK(describe({"a", {.relation = Bound::below, .number = 0, .value = "b", .by = 0.1}}) == "a < b - 0.1");
  CHECK(describe({"a", {.relation = Bound::at_most, .number = 0, .value = "b", .by = -0.1}}) ==
        "a <= b + 0.1");
}
