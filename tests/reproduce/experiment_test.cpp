// Experiment files: what they mean, and what is refused, and where.
#include "thimble/reproduce/experiment.h"

#include <cmath>
#include <filesystem>

#include "catch.h"
#include "core/temporary_directory.h"
#include "thimble/core/error.h"
#include "thimble/core/file.h"

using namespace thimble;

namespace {

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

// A line for each problem, without the folder.
std::string experiment_complaints(const std::string& text) {
  const ExperimentFiles files(text);
  const std::string folder = files.directory.path().string() + "/tests/";
  std::string lines;
  try {
    load_experiment(files.experiment);
  } catch (const ConfigError& e) {
    for (const ConfigProblem& problem : e.problems())
      lines += (lines.empty() ? "" : "\n") + problem_text(problem);
  }
  for (std::size_t at = 0; (at = lines.find(folder)) != std::string::npos;) lines.erase(at, folder.size());
  return lines;
}

Experiment load_parts(const Parts& p) {
  const ExperimentFiles files(p.top + p.runs + p.values + p.conditions);
  return load_experiment(files.experiment);
}
std::string experiment_complaint(const Parts& p) {
  return experiment_complaints(p.top + p.runs + p.values + p.conditions);
}

// Each on line 4, 5 or 6.
std::string top(const std::string& rest) {
  Parts parts;
  parts.top += rest;
  return experiment_complaint(parts);
}
std::string runs(const std::string& text) { return experiment_complaint({.runs = "runs: " + text + "\n"}); }
std::string values(const std::string& text) {
  return experiment_complaint({.values = "values: " + text + "\n"});
}
std::string conditions(const std::string& text) {
  return experiment_complaint({.conditions = "conditions: " + text + "\n"});
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

TEST_CASE("an experiment is quick and has three seeds unless it says otherwise", "[reproduce]") {
  const Experiment e = load_parts({});
  CHECK(e.quick);
  CHECK(e.seeds == std::vector<std::uint64_t>{42, 43, 44});
}

TEST_CASE("what an experiment must have", "[reproduce]") {
  CHECK(experiment_complaints("[1]") ==
        "e.yaml:1:1: must be a map with statement, source, kind, runs, values, conditions, quick, seeds, not "
        "a list");
  CHECK(experiment_complaint({.top = "statement: s\nkind: claim\n"}) ==
        "e.yaml:1:1: source is missing; it must have statement, source, kind, runs, values, conditions");
  CHECK(top("statment: x\n") == "e.yaml:4:1: statment: unknown key, did you mean statement?");
  CHECK(top("quick: maybe\n") == "e.yaml:4:8: quick: must be one of false, true, not maybe");
  CHECK(top("seeds: [1, 1]\n") == "e.yaml:4:12: seeds: repeated seed 1, first on line 4");
  CHECK(experiment_complaint({.top = "statement: s\nsource: []\nkind: claim\n"}) ==
        "e.yaml:2:9: source: must be a line of text, not empty");
  CHECK(experiment_complaint({.top = "statement: \"a\\nb\"\nsource: s\nkind: claim\n"}) ==
        "e.yaml:1:12: statement: must be a line of text, not \"a b\"");
  CHECK(experiment_complaint({.top = "statement: s\nsource: s\nkind: proof\n"}) ==
        "e.yaml:3:7: kind: must be one of golden, control, claim, not proof");
}

TEST_CASE("what a run may be", "[reproduce]") {
  CHECK(runs("[a]") ==
        "e.yaml:4:7: runs: must be a map from names to runs, not a list\n"
        "e.yaml:5:19: run: there is no run a");
  CHECK(runs("{a: {confg: x}}") ==
        "e.yaml:4:11: a: config is missing; it must have config\n"
        "e.yaml:4:12: confg: unknown key, did you mean config?");
  CHECK(runs("{a: {config: ../base.yaml}, A: {config: ../base.yaml}}") ==
        "e.yaml:4:35: A: a name has small letters, digits and _, a letter first");
  CHECK(runs("{a: {config: ../base.yaml}, b: {config: ../base.yaml}}") ==
        "e.yaml:4:38: b: no value is taken from this run; leave it out");
  CHECK_THAT(runs("{a: {config: none.yaml}}"), StartsWith("e.yaml:4:20: config: none.yaml: cannot be read"));
  CHECK(runs("{a: {config: []}}") == "e.yaml:4:20: config: must be the path of a config, not empty");
  CHECK(runs("{a: {config: ../base.yaml, set: [1]}}") ==
        "e.yaml:4:39: set: must be a map from keys of the config to values, not a list");
  CHECK(runs("{a: {config: ../base.yaml, set: {model.heads: 3}}}") ==
        "e.yaml:4:53: model.heads: 3 heads do not divide a d_model of 32; change one, or set "
        "model.attention.d_key and d_value");
  CHECK(runs("{a: {config: ../base.yaml, set: {train.seed: 3}}}") ==
        "e.yaml:4:52: train.seed: seeds gives it already; leave one of them out");
  CHECK_THAT(runs("{a: {config: ../base.yaml, set: {train.threads: 2}}}"),
             StartsWith("e.yaml:4:55: train.threads: each run of a sweep has one thread"));
}

TEST_CASE("what an evaluation may be", "[reproduce]") {
  CHECK(runs("{a: {config: ../base.yaml, evaluate: {long: {task.lngth: 3}}}}") ==
        "e.yaml:4:52: task.lngth: unknown key, did you mean task.length?");
  CHECK(runs("{a: {config: ../base.yaml, evaluate: {long: 3}}}") ==
        "e.yaml:4:51: long: must be a map from keys of the config to values, not 3");
  CHECK(runs("{a: {config: ../base.yaml, evaluate: {train: {task.length: 3}}}}") ==
        "e.yaml:4:52: train: is what every run has; choose another name");
  CHECK(runs("{a: {config: ../base.yaml, evaluate: 3}}") ==
        "e.yaml:4:44: evaluate: must be a map from names to changes of the config, not 3");
}

TEST_CASE("what a value may be", "[reproduce]") {
  CHECK(values("{x: {run: a, path: b}}") == "e.yaml:5:13: x: of is missing; it must have run, of, path");
  CHECK(values("{x: {run: b, of: train, path: b}}") ==
        "e.yaml:4:11: a: no value is taken from this run; leave it out\n"
        "e.yaml:5:19: run: there is no run b");
  CHECK(values("{x: {run: a, of: long, path: b}}") ==
        "e.yaml:5:26: of: must be one of train, metrics, inspect, permutation, not long");
  CHECK(values("{x: {run: a, of: train, path: b, take: most}}") ==
        "e.yaml:5:48: take: must be one of only, first, last, min, max, mean, count, not most");
  CHECK(values("{x: {run: a, of: train, path: a.*.b}}") ==
        "e.yaml:5:13: x: a.*.b may stand for many numbers; say which with take or where");
  CHECK(values("{x: {run: a, of: train, path: b, where: {c: 1}}}") ==
        "e.yaml:5:49: where: chooses among what a * stands for; b has none");
  CHECK(values("{x: {run: a, of: train, path: b.*, where: [1]}}") ==
        "e.yaml:5:51: where: must be a map from paths to what is looked for there, not a list");
  CHECK(values("{x: {run: a, of: train, path: b.*, where: {c: [1]}}}") ==
        "e.yaml:5:55: c: must be a text, a number or a map with at_least, at_most, above, below, by, not a "
        "list");
  CHECK(values("{x: {run: a, of: train, path: b.*, where: {c: {above: y}}}}") ==
        "e.yaml:5:63: above: there is no value y before this");
  CHECK(values("{x: {run: a, of: train, path: b, otherwise: soon}}") ==
        "e.yaml:5:53: otherwise: must be a number, not soon");
}

TEST_CASE("what a condition may be", "[reproduce]") {
  CHECK(conditions("{value: x}") == "e.yaml:6:13: conditions: must be a list of conditions, not a map");
  CHECK(conditions("[]") == "e.yaml:6:13: conditions: must be a list of conditions, not empty");
  CHECK(conditions("[{value: y, above: 1}]") == "e.yaml:6:22: value: there is no value y before this");
  CHECK(conditions("[{value: x, above: z}]") == "e.yaml:6:32: above: there is no value z before this");
  CHECK(conditions("[{value: x, above: '1'}]") == "e.yaml:6:32: above: must be a number, not \"1\"");
  CHECK(conditions("[{value: x, by: 1}]") ==
        "e.yaml:6:14: needs one of at_least, at_most, above, below, has 0");
  CHECK(conditions("[{value: x, above: 1, below: 2}]") ==
        "e.yaml:6:14: needs one of at_least, at_most, above, below, has 2");
  CHECK(conditions("[{value: x, above: 1, by: x}]") == "e.yaml:6:39: by: must be a number, not x");
  CHECK(conditions("[{value: x, limit: 1}]") ==
        "e.yaml:6:14: needs one of at_least, at_most, above, below, has 0\n"
        "e.yaml:6:25: limit: unknown key, must be one of value, at_least, at_most, above, below, by");
}
