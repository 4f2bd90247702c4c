// Verdicts, spread over seeds, and the results as JSON and Markdown.
#include <cmath>
#include <limits>

#include "catch.h"
#include "program/reproduce/markdown.h"
#include "program/reproduce/reproduce.h"
#include "thimble/train/json.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

const double kUnknown = std::numeric_limits<double>::quiet_NaN();

ExperimentResult result() {
  ExperimentResult r;
  Experiment& e = r.experiment;
  e.name = "shrinks";
  e.file = "configs/reproduce/shrinks.yaml";
  e.statement = "a < b & \"c\"";
  e.source = "<script>alert(1)</script>";
  e.kind = ExperimentKind::golden;
  e.seeds = {1, 2, 3};
  e.runs = {{"trained", {.file = "c.yaml", .overrides = {"model.heads=2"}, .config = {}}, {}}};
  e.values.resize(2);
  e.values[0].name = "loss";
  e.values[1].name = "solved_at";
  e.conditions = {{"loss", {.relation = Bound::below, .number = 0.5}}};
  r.values = {{0.75, 0.25, 0.375}, {kUnknown, std::numeric_limits<double>::infinity(), 2}};
  r.conditions = {{false, true, true}};
  return r;
}

}  // namespace

TEST_CASE("a verdict comes from conditions on seeds", "[reproduce]") {
  using enum ExperimentVerdict;
  CHECK(judge_conditions({{true, true}, {true, true}}, true) == pass);
  CHECK(judge_conditions({{true, true}, {true, false}}, true) == not_shown);
  CHECK(judge_conditions({{false, true}, {true, false}}, true) == not_shown);
  CHECK(judge_conditions({{true, true}, {false, false}}, true) == fail);
  CHECK(judge_conditions({{false, true}, {false, false}}, true) == fail);
  CHECK(judge_conditions({{true, true}}, false) == not_shown);
  CHECK(judge_conditions({{false, false}}, false) == not_shown);
  CHECK(name(pass) == "PASS");
  CHECK(name(fail) == "FAIL");
  CHECK(name(not_shown) == "NOT SHOWN");
}

TEST_CASE("goldens and controls must pass, claims may come out either way", "[reproduce]") {
  ExperimentResult r = result();
  CHECK_FALSE(r.succeeded());
  r.verdict = ExperimentVerdict::pass;
  CHECK(r.succeeded());
  r.problems = {"a run failed"};
  CHECK_FALSE(r.succeeded());
  r.problems.clear();
  r.verdict = ExperimentVerdict::fail;
  r.experiment.kind = ExperimentKind::control;
  CHECK_FALSE(r.succeeded());
  r.experiment.kind = ExperimentKind::claim;
  CHECK(r.succeeded());
}

TEST_CASE("nothing begins once a stop is wanted", "[reproduce]") {
  struct Stop : ReproduceObserver {
    bool wants_stop() override { return true; }
  } stop;
  const TemporaryDirectory directory;
  CHECK(run_experiment(result().experiment, {.directory = directory.path(), .observer = &stop}).interrupted);
  CHECK(directory.files() == 0);
}

TEST_CASE("results as JSON", "[reproduce]") {
  const Json json = to_json(result());
  CHECK(json["verdict"] == "NOT SHOWN");
  CHECK(json["kind"] == "golden");
  CHECK(json["seeds"] == Json({1, 2, 3}));
  CHECK(json["runs"][0]["overrides"] == Json({"model.heads=2"}));
  CHECK(json_text(json["values"][0]) ==
        R"({"name":"loss","min":0.25,"median":0.375,"max":0.75,"count":3,"seeds":[0.75,0.25,0.375]})");
  CHECK(json_text(json["values"][1]["seeds"]) == R"([null,"never",2.0])");
  CHECK(json_text(json["conditions"]) == R"([{"condition":"loss < 0.5","seeds":[false,true,true]}])");
}

TEST_CASE("results as Markdown hold every number, and texts are no more than text", "[reproduce]") {
  ExperimentResult r = result();
  r.problems = {"a | b\n# c *d* [e] `f` \\ \x1b"};
  const std::vector<ExperimentResult> results = {r};
  const std::string text = to_markdown(results);
  for (const char* part :
       {"\n| shrinks | golden | NOT SHOWN | 0 |\n", "\n## shrinks: NOT SHOWN\n\na \\< b \\& \"c\"\n",
        "\ngolden: \\<script>alert(1)\\</script>\n",
        "\n| value | seed 1 | seed 2 | seed 3 | min | median | max |\n",
        "\n| loss | 0.75 | 0.25 | 0.375 | 0.25 | 0.375 | 0.75 |\n", "\n| solved_at | - | never | 2 |",
        "\n| loss \\< 0.5 | does not hold | holds | holds |  |  |  |\n",
        "\n- trained: c.yaml model.heads=2\n",
        "\n- **problem**: a \\| b # c \\*d\\* \\[e\\] \\`f\\` \\\\ \\\\u{1b}\n"})
    CHECK_THAT(text, ContainsSubstring(part));
}
