// Experiment files: their content, and the places of their problems.
#include "program/reproduce/experiment.h"

#include <cmath>
#include <filesystem>

#include "catch.h"
#include "problems.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

using Texts = std::vector<std::string>;

struct Parts {
  std::string top = "statement: it holds\nsource: a paper\nkind: claim\n";
  std::string runs = "runs: {a: {config: ../base.yaml}}\n";
  std::string values = "values: {x: {run: a, of: train, path: test.loss}}\n";
  std::string conditions = "conditions: [{value: x, at_least: 1}]\n";
};

// A folder with tests/e.yaml of that text and base.yaml.
struct ExperimentFiles {
  TemporaryDirectory directory;
  std::string experiment = (directory / "tests/e.yaml").string();

  explicit ExperimentFiles(const std::string& text) {
    std::filesystem::create_directory(directory / "tests");
    write_file(experiment, text);
    write_file(directory / "base.yaml", "model: {d_model: 32}\n");
  }
};

// Returns the place of each problem.
Texts experiment_places(const std::string& text) {
  const ExperimentFiles files(text);
  return places(problems_of([&] { load_experiment(files.experiment); }));
}

Experiment load_parts(const Parts& p) {
  const ExperimentFiles files(p.top + p.runs + p.values + p.conditions);
  return load_experiment(files.experiment);
}
Texts experiment_places(const Parts& p) {
  return experiment_places(p.top + p.runs + p.values + p.conditions);
}

// Each on line 4, 5 or 6.
Texts top(const std::string& rest) {
  Parts parts;
  parts.top += rest;
  return experiment_places(parts);
}
Texts runs(const std::string& text) { return experiment_places(Parts{.runs = "runs: " + text + "\n"}); }
Texts values(const std::string& text) { return experiment_places(Parts{.values = "values: " + text + "\n"}); }
Texts conditions(const std::string& text) {
  return experiment_places(Parts{.conditions = "conditions: " + text + "\n"});
}

}  // namespace

TEST_CASE("an experiment has runs, values and conditions", "[reproduce]") {
  const Experiment e = load_parts(
      {.top = "statement: a <b>\nsource: s\nkind: golden\nquick: false\nseeds: [7, 5]\n",
       .runs = "runs:\n  a: {config: ../base.yaml, set: {model.heads: 2, task.length: 9}}\n"
               "  b: {config: ../base.yaml, evaluate: {long: {task.length: 20}}}\n",
       .values = "values:\n  x: {run: a, of: train, path: test.loss}\n"
                 "  y: {run: b, of: long, path: test.*, take: min, otherwise: never,\n"
                 "    where: {name: induction, layer: 1, score.value: {above: x, by: -0.5}}}\n",
       .conditions = "conditions:\n  - {value: x, at_most: 0.25}\n  - {value: y, below: x, by: 2}\n"});
  CHECK(e.name == "e");
  CHECK(e.statement == "a <b>");
  CHECK(e.source == "s");
  CHECK(e.kind == ExperimentKind::golden);
  CHECK_FALSE(e.quick);
  CHECK(e.seeds == std::vector<std::uint64_t>{7, 5});
  REQUIRE(e.runs.size() == 2);
  CHECK(e.runs[0].name == "a");
  CHECK(e.runs[0].setting.overrides == std::vector<std::string>{"model.heads=2", "task.length=9"});
  CHECK(e.runs[0].setting.config.model.heads == 2);
  CHECK(e.runs[1].setting.config.model.d_model == 32);
  REQUIRE(e.runs[1].evaluations.size() == 1);
  CHECK(e.runs[1].evaluations[0].name == "long");
  CHECK(e.runs[1].evaluations[0].overrides == std::vector<std::string>{"task.length=20"});
  REQUIRE(e.values.size() == 2);
  CHECK(e.values[0].take == Take::only);
  CHECK_FALSE(e.values[0].otherwise);
  const ExperimentValue& y = e.values[1];
  CHECK(y.run == "b");
  CHECK(y.of == "long");
  CHECK(y.path == "test.*");
  CHECK(y.take == Take::min);
  CHECK(std::isinf(y.otherwise.value()));
  REQUIRE(y.where.size() == 3);
  CHECK(y.where[0].path == "name");
  CHECK(y.where[0].equals == "induction");
  CHECK(y.where[1].equals == "1");
  CHECK(y.where[2].path == "score.value");
  CHECK(y.where[2].bound->relation == Bound::above);
  CHECK(y.where[2].bound->value == "x");
  CHECK(y.where[2].bound->by == -0.5);
  REQUIRE(e.conditions.size() == 2);
  CHECK(e.conditions[0].value == "x");
  CHECK(e.conditions[0].bound.relation == Bound::at_most);
  CHECK(e.conditions[0].bound.number == 0.25);
  CHECK(e.conditions[1].bound.relation == Bound::below);
  CHECK(e.conditions[1].bound.by == 2);
}

TEST_CASE("an experiment is quick and has three seeds by default", "[reproduce]") {
  const Experiment e = load_parts({});
  CHECK(e.quick);
  CHECK(e.seeds == std::vector<std::uint64_t>{42, 43, 44});
}

TEST_CASE("what an experiment must have", "[reproduce]") {
  CHECK(experiment_places(Parts{.top = "statement: s\nkind: claim\n"}) == Texts{"1:1"});
  CHECK(top("statment: x\n") == Texts{"4:1 statment"});
  CHECK(top("seeds: [1, 1]\n") == Texts{"4:12 seeds"});
  CHECK(experiment_places(Parts{.top = "statement: s\nsource: []\nkind: claim\n"}) == Texts{"2:9 source"});
  CHECK(experiment_places(Parts{.top = "statement: \"a\\nb\"\nsource: s\nkind: claim\n"}) ==
        Texts{"1:12 statement"});
  CHECK(experiment_places(Parts{.top = "statement: s\nsource: s\nkind: proof\n"}) == Texts{"3:7 kind"});
}

TEST_CASE("what a run may be", "[reproduce]") {
  CHECK(runs("{a: {config: []}}") == Texts{"4:20 config"});
  CHECK(runs("{a: {config: ../base.yaml, set: {model.heads: 3}}}") == Texts{"4:53 model.heads"});
  CHECK(runs("{a: {config: ../base.yaml, set: {train.threads: 2}}}") == Texts{"4:55 train.threads"});
}

TEST_CASE("what an evaluation may be", "[reproduce]") {
  CHECK(runs("{a: {config: ../base.yaml, evaluate: {long: {task.lngth: 3}}}}") == Texts{"4:52 task.lngth"});
  CHECK(runs("{a: {config: ../base.yaml, evaluate: {long: 3}}}") == Texts{"4:51 long"});
}

TEST_CASE("what a value may be", "[reproduce]") {
  CHECK(values("{x: {run: a, of: train, path: b, take: most}}") == Texts{"5:48 take"});
}

TEST_CASE("what a condition may be", "[reproduce]") {
  CHECK(conditions("[]") == Texts{"6:13 conditions"});
  CHECK(conditions("[{value: x, above: z}]") == Texts{"6:32 above"});
  CHECK(conditions("[{value: x, above: 1, below: 2}]") == Texts{"6:14"});
  CHECK(conditions("[{value: x, above: 1, by: x}]") == Texts{"6:39 by"});
}
