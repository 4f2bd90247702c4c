// Overrides from the command line.
#include <filesystem>

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
  CHECK(place("{}", {"task.name.qqq=3"}) == "argument 1 task.name.qqq");
}

TEST_CASE("an override with several values leads to sweeps", "[config]") {
  for (const char* value : {"[1,2]", "[1, 2]"})
    CHECK_THAT(problem("{}", {"model.heads=" + std::string(value)}).rule,
               ContainsSubstring("grid: {model.heads: [1, 2]}"));
  CHECK_THAT(problem("{}", {"task.file=a,b"}).rule, !ContainsSubstring("sweep"));
}

TEST_CASE("an override that is not plain text", "[config]") {
  CHECK(place("{}", {"model.layers=\xff"}) == "argument 1");
  CHECK(place("{}", {"model.layers=1\n"}) == "argument 1");
}

TEST_CASE("a path and a text are taken as they are, unless the whole value is in quotes", "[config]") {
  const std::string here = std::filesystem::current_path();
  const auto task = [](const std::string& key, const std::string& value) {
    return parse_config("task: {name: file}\n", "t.yaml", {"task.file=x", "task." + key + "=" + value}).task;
  };
  for (const std::string name :
       {"my #2.txt", "# x",  "[x].txt",   "{x}.txt", "*.txt", "&a",     "!t",    "%d.txt", "@x",
        "`x",        "null", "~",         "- a",     "a: b",  " first", "last ", "true",   "1e3",
        "|",         "> y",  "\"q\".txt", "it's",    "a,b",   "=a=",    "\"",    "'",      "é\u3000"}) {
    CAPTURE(name);
    CHECK(task("file", name).file == here + "/" + name);
    CHECK(task("separator", name).options.separator == name);
    CHECK(task("no_answer", name).options.no_answer == name);
  }
  CHECK(task("separator", "\t").options.separator == "\t");
  CHECK(task("separator", R"("a\tb")").options.separator == "a\tb");
  CHECK(task("separator", "'it''s'").options.separator == "it's");
  CHECK(task("file", R"(" #\"1")").file == here + "/ #\"1");
  CHECK(place("task: {name: file}", {"task.file=a\nb"}) == "argument 1 task.file");
  CHECK(place("task: {name: file}", {"task.file=\xff"}) == "argument 1 task.file");
  CHECK(place("task: {name: file}", {"task.separator=\"a\nb\""}) == "argument 1");
  CHECK(problem("task: {name: file}", {"task.file="}).rule.ends_with(", not empty"));
  CHECK(problem("task: {name: file}", {"task.file=x", "task.separator="}).rule.ends_with(", not empty"));
}

TEST_CASE("an override that is none, or no YAML", "[config]") {
  CHECK(place("{}", {"model.layers=[1"}) == "argument 1");
  CHECK(place("{}", {"=3"}) == "argument 1");
}
