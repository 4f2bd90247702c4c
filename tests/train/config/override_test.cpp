// Overrides from the command line.
#include "catch.h"
#include "config_problems.h"

using namespace thimble;

namespace {

Config with(const std::vector<std::string>& overrides) {
  return parse_config("model: {layers: 1, norm: post}\n", "t.yaml", overrides);
}

}  // namespace

TEST_CASE("an override wins over the file, the last over the first", "[config]") {
  CHECK(with({}).model.layers == 1);
  CHECK(with({"model.layers=3"}).model.layers == 3);
  CHECK(with({"model.layers=3", "model.layers=2"}).model.layers == 2);
  CHECK(with({"train.optimizer.lr=5e-4"}).train.optimizer.lr == 5e-4);
  CHECK(with({"task.name=sort", "model.norm=pre"}).task.name == "sort");
  CHECK(with({"model.norm=pre"}).model.norm == NormOrder::pre);
}

TEST_CASE("a wrong override is quoted as the place of the problem", "[config]") {
  CHECK(place("{}", {"model.layers="}) == "argument 1 model.layers");
  CHECK(place("{}", {"model.layers=[3]"}) == "argument 1 model.layers");
  CHECK(place("{}", {"model.norm=pst"}) == "argument 1 model.norm");
}

TEST_CASE("an override of an unknown key", "[config]") {
  CHECK(place("{}", {"model.layer=3"}) == "argument 1 model.layer");
  CHECK(place("{}", {"xyz.qqq=3"}) == "argument 1 xyz.qqq");
  CHECK(place("{}", {"task.name.qqq=3"}) == "argument 1 task.name.qqq");
}

TEST_CASE("an override with several values leads to sweeps", "[config]") {
  for (const char* value : {"1,2", "[1,2]", "[1, 2]"})
    CHECK_THAT(problem("{}", {"model.heads=" + std::string(value)}).rule,
               ContainsSubstring("grid: {model.heads: [1, 2]}"));
  CHECK_THAT(problem("{}", {"task.file=a,b"}).rule, !ContainsSubstring("sweep"));
}

TEST_CASE("an override that is not plain text", "[config]") {
  CHECK(place("{}", {"model.layers=\xff"}) == "argument 1");
  CHECK(place("{}", {"model.layers=1\n"}) == "argument 1");
}

TEST_CASE("an override of a whole section", "[config]") {
  for (const char* section : {"train.optimizer=adam", "train.optimizer={name: adam}"})
    CHECK_THAT(problem("{}", {section}).rule, ContainsSubstring("train.optimizer.name=VALUE"));
}

TEST_CASE("an override that is none, or no YAML", "[config]") {
  CHECK(place("{}", {"model.layers=[1"}) == "argument 1");
  CHECK(place("{}", {"=3"}) == "argument 1");
}
