#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "cli/text/reproduce_table.h"
#include "cli/text/sweep_table.h"
#include "thimble/core/width.h"

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

TEST_CASE("labels of settings are what distinguishes them", "[cli]") {
  CHECK(cli::setting_labels(SweepCase("5e-").sweep) ==
        std::vector<std::string>{"heads=1 lr=5e-1", "heads=4 lr=5e-4"});
  Sweep sweep;
  sweep.settings = {setting({"a.x=1", "b.x=2"}), setting({"a.x=2", "b.x=2"})};
  CHECK(cli::setting_labels(sweep) == std::vector<std::string>{"a.x=1", "a.x=2"});
  sweep.settings = {setting({"a=1"})};
  CHECK(cli::setting_labels(sweep) == std::vector<std::string>{"(the config)"});
}

TEST_CASE("the table of a sweep has means, deviations and failed runs", "[cli]") {
  const SweepCase c("5e-");
  CHECK(lines_of(cli::sweep_table(c.sweep, c.runs, 80)) ==
        std::vector<std::string>{
            "setting            seeds val. loss test loss tokens % sequences %   steps      s",
            "heads=1 lr=5e-1      2/2   1.25000   2.00000    25.00        0.00     390    2.5",
            "                      +-   0.35355   0.00000     0.00        0.00       0    0.0",
            "heads=4 lr=5e-4      1/2   2.00000   2.00000    25.00        0.00     390    2.5",
            "                      +-         -         -        -           -       -      -",
            "  seed 3: failed: out of memory"});
}

TEST_CASE("the table of a sweep leaves out columns from the right that do not fit", "[cli]") {
  const SweepCase c("0.00000000000000000000000000000005e-");
  for (const std::size_t width : {60, 80, 120}) {
    CAPTURE(width);
    const auto lines = lines_of(cli::sweep_table(c.sweep, c.runs, width));
    check_width(lines, width);
    const bool beside = width == 120;  // labels, and numbers
    CHECK(lines.size() == (beside ? 6U : 8U));
    CHECK(lines[0].ends_with(width == 60 ? " steps" : " s"));
  }
  CHECK(lines_of(cli::sweep_table(c.sweep, c.runs, 40))[0] == "   seeds val. loss test loss tokens %");
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
    CHECK(table.find("golden   NOT SHOWN     12 s\n") != std::string::npos);
    CHECK(table.find("  2/3     0.1235     0.9912     0.9923\n") != std::string::npos);
    CHECK(table.find("             200        300      never\n") != std::string::npos);
    CHECK(lines_of(table).size() == (width == 60 ? 6U : 5U));
  }
}
