#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "program/cli/text/compare_table.h"
#include "program/cli/text/inspect.h"
#include "program/cli/text/reproduce_table.h"
#include "program/cli/text/sweep_table.h"
#include "program/cli/text/text_table.h"
#include "train/files/text/width.h"

using namespace thimble;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0, end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(text.substr(start, end - start));
  return lines;
}

void check_width(const std::vector<std::string>& lines, std::size_t width) {
  for (const std::string& line : lines) {
    INFO(line);
    CHECK(display_width(line) <= width);
  }
}

SweepSetting setting(std::vector<std::string> overrides) {
  SweepSetting result;
  result.overrides = std::move(overrides);
  return result;
}

// Two settings with two seeds each, of which the last run failed.
struct SweepCase {
  Sweep sweep;
  std::vector<SweepRun> runs;

  explicit SweepCase(const std::string& rate) {
    for (const char* heads : {"1", "4"})
      sweep.settings.push_back(setting(
          {"train.steps=390", std::string("model.heads=") + heads, "train.optimizer.lr=" + rate + heads}));
    for (std::size_t i = 0; i < 4; ++i) {
      SweepRun& run = runs.emplace_back();
      run.setting = i / 2;
      run.config.train.seed = i;
      run.status = i < 3 ? RunStatus::done : RunStatus::failed;
      if (i < 3)
        run.result = {{"steps", 390},
                      {"seconds", 2.5},
                      {"validation", {{"loss", 1.0 + 0.5 * static_cast<double>(i)}}},
                      {"test", {{"loss", 2.0}, {"accuracy", 0.25}, {"sequence_accuracy", 0}}}};
    }
    runs[3].error = "out of memory";
  }
};

}  // namespace

TEST_CASE("a table fits itself into the terminal, and says what it leaves out", "[cli]") {
  cli::TextTable table("name", {{.title = "a"}, {.title = "first ", .rank = -1}, {.title = "b ", .rank = 1}});
  table.add("x", {"1", "2 ", "3 "});
  table.add("a label of twenty-two", {"10", "20 "});
  table.add_text("  a note on the rows");
  CHECK(table.text(40) ==
        "name                   a first  b\n"
        "x                      1     2  3\n"
        "a label of twenty-two 10    20\n"
        "  a note on the rows\n");
  CHECK(table.text(30) ==
        "name                   a b\n"
        "x                      1 3\n"
        "a label of twenty-two 10\n"
        "  a note on the rows\n"
        "Not shown in 30 columns:\n"
        "first; see --json.\n");
  CHECK(table.text(19) ==
        "name           a b\n"
        "x              1 3\n"
        "a label of\n"
        "  twenty-two\n"
        "              10\n"
        "  a note on the\n"
        "    rows\n"
        "Not shown in 19\n"
        "columns: first; see\n"
        "--json.\n");
  CHECK(table.text(2).starts_with("name\n   b\n"));  // one column stays
  CHECK(table.text(7).starts_with("name\n   b\nx  3\na label\n  of\n  twenty-two\n"));
}

TEST_CASE("labels of settings are what distinguishes them", "[cli]") {
  CHECK(setting_labels(SweepCase("5e-").sweep) ==
        std::vector<std::string>{"heads=1 lr=5e-1", "heads=4 lr=5e-4"});
  Sweep sweep;
  sweep.settings = {setting({"a.x=1", "b.x=2"}), setting({"a.x=2", "b.x=2"})};
  CHECK(setting_labels(sweep) == std::vector<std::string>{"a.x=1", "a.x=2"});
  sweep.settings = {setting({"a=1"})};
  CHECK(setting_labels(sweep) == std::vector<std::string>{"(the config)"});
}

TEST_CASE("the table of a sweep has means, deviations and failed runs", "[cli]") {
  const SweepCase c("5e-");
  CHECK(
      lines_of(cli::sweep_table(c.sweep, c.runs, 80)) ==
      std::vector<std::string>{"setting         seeds val. loss test loss tokens % sequences %  steps      s",
                               "heads=1 lr=5e-1   2/2   1.25000   2.00000    25.00        0.00    390    2.5",
                               "                   +-   0.35355   0.00000     0.00        0.00      0    0.0",
                               "heads=4 lr=5e-4   1/2   2.00000   2.00000    25.00        0.00    390    2.5",
                               "                   +-         -         -        -           -      -      -",
                               "  seed 3: failed: out of memory"});
}

TEST_CASE("the table of successive halving starts with the best setting", "[cli]") {
  SweepCase c("5e-");
  c.sweep.settings.push_back(setting({"train.steps=390", "model.heads=8", "train.optimizer.lr=5e-8"}));
  c.sweep.halving.steps = {10, 20};
  c.runs.resize(3);
  const auto run = [&](std::size_t i, RunStatus status, std::vector<double> losses) {
    c.runs[i] = {};
    c.runs[i].setting = i;
    c.runs[i].status = status;
    c.runs[i].losses = std::move(losses);
  };
  const auto first_words = [&] {
    std::string words;
    for (const std::string& line : lines_of(cli::sweep_table(c.sweep, c.runs, 80)))
      if (line.starts_with("heads")) words += line.substr(0, 8);
    return words;
  };
  run(0, RunStatus::stopped, {1.5});
  run(1, RunStatus::stopped, {1.25, 1.75});  // stopped later, with a higher loss
  run(2, RunStatus::done, {1.4, 1.0});
  c.runs[2].result = {{"steps", 30}, {"validation", {{"loss", 2.0}}}};
  CHECK(first_words() == "heads=8 heads=4 heads=1 ");
  run(1, RunStatus::stopped, {1.25});
  CHECK(first_words() == "heads=8 heads=4 heads=1 ");
  run(0, RunStatus::stopped, {1.0});
  CHECK(first_words() == "heads=8 heads=1 heads=4 ");
  CHECK(lines_of(cli::sweep_table(c.sweep, c.runs, 80)).size() == 6);  // no deviations of one seed
  c.sweep.halving = {};
  CHECK(first_words() == "heads=1 heads=4 heads=8 ");
}

TEST_CASE("the table of a sweep leaves out columns from the right that do not fit", "[cli]") {
  const SweepCase c("0.00000000000000000000000000000005e-");
  for (const std::size_t width : {60, 80, 120}) {
    CAPTURE(width);
    const auto lines = lines_of(cli::sweep_table(c.sweep, c.runs, width));
    check_width(lines, width);
    const bool beside = width == 120;  // labels, and numbers
    CHECK(lines.size() == (beside ? 6U : width == 60 ? 10U : 8U));
    CHECK(lines[width == 60 ? 1 : 0].ends_with(width == 60 ? " steps" : " s"));
    CHECK((lines.back() == "Not shown in 60 columns: s; see --json.") == (width == 60));
  }
  CHECK(lines_of(cli::sweep_table(c.sweep, c.runs, 40))[1] == "   seeds val. loss test loss tokens %");
}

TEST_CASE("the table of experiments fits its terminal, with every number", "[cli]") {
  ExperimentResult result;
  result.experiment.name = "reversal";
  result.experiment.kind = ExperimentKind::golden;
  result.experiment.seeds = {1, 2, 3};
  result.experiment.values.resize(2);
  result.experiment.values[0].name = "accuracy";
  result.experiment.values[1].name =
      "the step at which all of the validation tokens were right for the first time";
  result.experiment.conditions = {{"accuracy", {Bound::at_least, 0.9, {}, 0}}};
  result.values = {{0.991234, 0.992345, 0.123456}, {300, 200, std::numeric_limits<double>::infinity()}};
  result.conditions = {{true, true, false}};
  result.verdict = ExperimentVerdict::not_shown;
  result.seconds = 12.4;
  for (const std::size_t width : {60, 80, 120}) {
    CAPTURE(width);
    const std::string table = cli::experiments_table(std::vector{result}, width);
    check_width(lines_of(table), width);
    CHECK(table.find("reversal  golden, NOT SHOWN, 12 s\n") != std::string::npos);
    CHECK(table.find("  2/3     0.1235     0.9912     0.9923\n") != std::string::npos);
    CHECK(table.find("             200        300      never\n") != std::string::npos);
    CHECK(lines_of(table).size() == (width == 60 ? 6U : 5U));
  }
}

TEST_CASE("task targets by kind are printed for a head that attends to them most", "[cli]") {
  std::vector<HeadScore> scores;
  for (const char* name : {"previous_token", "next_token", "mirror", "same_token", "duplicate_token",
                           "induction", "task_target", "offset", "absolute_position", "self"})
    scores.push_back({.name = name, .value = 0.1, .chance = 0.1, .attainable = 1, .eligible = 500});
  scores[6].value = 0.325;
  CHECK(cli::kinds_text(scores).empty());
  scores.push_back({.name = "task_target", .value = 0.53, .eligible = 250, .kind = "agent"});
  scores.push_back({.name = "task_target", .value = 0.12, .eligible = 250, .kind = "patient"});
  CHECK(cli::kinds_text(scores) == "; target by kind: agent 0.530, patient 0.120");
  scores[2].value = 0.5;  // mirror
  CHECK(cli::kinds_text(scores).empty());
  scores[2].value = scores[6].value = 0.1;  // none is above chance
  CHECK(cli::kinds_text(scores).empty());
}

TEST_CASE("a comparison fits the terminal, and marks the best") {
  Comparison comparison;
  for (const char* name : {"short", "a-run-with-a-name-longer-than-columns", "three"})
    comparison.runs.push_back({.name = name, .directories = {name}});
  comparison.runs[2].directories.push_back("another seed");
  comparison.config = {{"model.heads", {"1", "2", ""}, true}, {"model.layers", {"1", "1", "1"}, false}};
  const auto only = [](double x) { return spread({x}); };
  comparison.results = {
      {"/validation/loss", {only(0.5), only(0.25), spread({0.75, 1.25})}, {false, true, false}},
      {"/steps", {only(10), spread({}), only(30)}, {false, false, false}}};
  comparison.curves = {{"validation", "loss", {{{5, only(1)}, {10, only(0.5)}}, {}, {{30, only(1)}}}}};
  comparison.models = {{.heads = 1}, {.heads = 2}, {}};
  comparison.heads = {
      {1,
       {"",
        7,
        {{.head = {0, 0}, .match = HeadId{0, 1}, .overlap = 0.5, .elsewhere = 0.25, .chance = 0.125}},
        {{0, 0}}}},
      {2, {.obstacle = "there are no test sequences"}}};
  for (const std::size_t width : {40, 60, 80, 120}) {
    CAPTURE(width);
    const std::string text = cli::compare_text(comparison, false, true, width);
    const std::vector<std::string> lines = lines_of(text);
    check_width(lines, width);
    for (const std::string& line : lines) CHECK_FALSE(line.ends_with(' '));
    CHECK(text.find("0.25000*") != std::string::npos);
    CHECK(text.find("0.50000*") == std::string::npos);
    CHECK(text.find("  max") != std::string::npos);
    CHECK(text.find("1.25000") != std::string::npos);
    CHECK(text.find("model.heads") != std::string::npos);
    CHECK(text.find("model.layers") == std::string::npos);
    CHECK_THAT(text,
               ContainsSubstring("\n0.0 ") && ContainsSubstring(" 0.1 ") && ContainsSubstring(" 0.500"));
    CHECK((text.find("     0.500     0.125     0.250\n") != std::string::npos) == (width > 40));
    CHECK(cli::compare_text(comparison, true, true, width).find("model.layers") != std::string::npos);
  }
  CHECK(cli::compare_text(comparison, false, true, 80).find("warning") == std::string::npos);
  comparison.data_differs = {"task.length", "data files"};
  const std::string text = cli::compare_text(comparison, false, true, 80);
  CHECK(text.find("warning: the runs differ in their data (task.length, data files): their results") !=
        std::string::npos);
  // From a sixth of the step axis to a third of it: high, then half as high.
  CHECK(text.find(" #######= ") != std::string::npos);
  CHECK(text.find("are not compared: there are no test sequences.") != std::string::npos);
}
