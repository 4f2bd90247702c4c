// Overrides from the command line.
#include "catch.h"
#include "complaints.h"

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
  CHECK(complaint("{}", {"model.layers=x"}) ==
        "command line: model.layers=x: must be an integer from 1 to 128, not x");
  CHECK(complaint("{}", {"model.layers="}) ==
        "command line: model.layers=: must be an integer from 1 to 128, not empty");
  CHECK(complaint("{}", {"model.layers=[3]"}) ==
        "command line: model.layers=[3]: must be an integer from 1 to 128, not a list");
  CHECK(complaint("{}", {"model.norm=pst"}) ==
        "command line: model.norm=pst: must be one of pre, post, not pst, did you mean post?");
}

TEST_CASE("an override of an unknown key", "[config]") {
  CHECK(complaint("{}", {"layers=3"}) == "command line: layers=3: unknown key, did you mean model.layers?");
  CHECK(complaint("{}", {"model.layer=3"}) ==
        "command line: model.layer=3: unknown key, did you mean model.layers?");
  CHECK(complaint("{}", {"xyz.qqq=3"}) ==
        "command line: xyz.qqq=3: unknown key, must be one of base, task, data, model, train");
  CHECK(complaint("{}", {"train.schedule.qqq=3"}) ==
        "command line: train.schedule.qqq=3: unknown key, must be one of name, warmup");
  CHECK(complaint("{}", {"task.name.qqq=3"}) ==
        "command line: task.name.qqq=3: unknown key, must be one of name, symbols, length, min_length, "
        "offset, pairs, depth, file, validation_file, test_file, vocabulary_file");
}

TEST_CASE("an override with several values leads to sweeps", "[config]") {
  for (const char* value : {"1,2", "[1,2]", "[1, 2]"})
    CHECK(complaint("{}", {"model.heads=" + std::string(value)}) ==
          "command line: model.heads=" + std::string(value) +
              ": takes one value; thimble sweep tries several, with grid: {model.heads: [1, 2]} in its file");
  CHECK(complaint("{}", {"heads=1,2"}) ==
        "command line: heads=1,2: unknown key, did you mean model.heads? It takes one value; thimble sweep "
        "tries several.");
  CHECK(complaint("{}", {"task.file=a,b"}).find("one value") == std::string::npos);
}

TEST_CASE("an override that is not plain text", "[config]") {
  const std::string rule = ": must be UTF-8 without control characters";
  CHECK(complaint("{}", {"model.layers=\xff"}) == "command line: model.layers=\xff" + rule);
  CHECK(complaint("{}", {"model.layers=1\n"}) == "command line: model.layers=1 " + rule);
}

TEST_CASE("an override of a whole section", "[config]") {
  const std::string rule = "a section; set its keys one by one, as in train.optimizer.name=VALUE";
  CHECK(complaint("{}", {"train.optimizer=adam"}) == "command line: train.optimizer=adam: " + rule);
  CHECK(complaint("{}", {"train.optimizer={name: adam}"}) ==
        "command line: train.optimizer={name: adam}: " + rule);
}

TEST_CASE("an override that is none, or no YAML", "[config]") {
  CHECK(complaint("{}", {"model.layers"}) == "command line: model.layers: must be key=value");
  CHECK_THAT(complaint("{}", {"model.layers=[1"}),
             StartsWith("command line: model.layers=[1: not a YAML value: "));
  CHECK_THAT(complaint("{}", {"=3"}), StartsWith("command line: =3: unknown key"));
}
