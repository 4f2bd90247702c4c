// Successive halving: decisions from losses.
#include "program/sweep/halving.h"

#include <limits>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Runs of settings 0, 1, ... with a run each, with these losses.
std::vector<SweepRun> runs_with(const std::vector<std::vector<double>>& losses) {
  std::vector<SweepRun> runs;
  for (const auto& of_run : losses) {
    SweepRun& run = runs.emplace_back();
    run.setting = runs.size() - 1;
    run.losses = of_run;
  }
  return runs;
}

// Returns a letter for each run: s stopped, w waits for others, or the first digit of the step it trains to,
// "-" for the last step.
std::string decided(std::vector<SweepRun>& runs, const Halving& halving) {
  apply_halving(halving, runs);
  std::string out;
  for (const SweepRun& run : runs)
    out += run.status == RunStatus::stopped ? "s"
           : run.reached                    ? "w"
           : run.stop_after == 0            ? "-"
                                            : std::to_string(run.stop_after).substr(0, 1);
  return out;
}
std::string decided(const std::vector<std::vector<double>>& losses, const Halving& halving) {
  std::vector<SweepRun> runs = runs_with(losses);
  return decided(runs, halving);
}

}  // namespace

TEST_CASE("the settings with the lowest losses go on, of equal ones the first", "[sweep]") {
  const Halving halving{.steps = {100, 200}, .reduction_factor = 2};
  CHECK(decided({{}, {}, {}}, halving) == "111");
  CHECK(decided({{3}, {}, {1}}, halving) == "w1w");
  CHECK(decided({{3}, {2}, {1}, {4}}, halving) == "s22s");
  CHECK(decided({{3}, {2}, {1}}, halving) == "s22");
  CHECK(decided({{2}, {2}, {2}, {2}}, halving) == "22ss");
  CHECK(decided({{3}, {2, 5}, {1}, {4}}, halving) == "sw2s");
  CHECK(decided({{3}, {2, 5}, {1, 6}, {4}}, halving) == "s-ss");
  CHECK(decided({{1}}, halving) == "2");
  CHECK(decided({{5}, {4}, {3}, {2}, {1}}, {.steps = {100}, .reduction_factor = 4}) == "sss--");
  CHECK(decided({{5}, {4}}, {}) == "--");
}

TEST_CASE("losses that are not finite are the worst", "[sweep]") {
  const Halving halving{.steps = {100}, .reduction_factor = 2};
  CHECK(decided({{kInf}, {kInf}, {1}, {2}}, halving) == "ss--");
  CHECK(decided({{kInf}, {kInf}, {kInf}, {kInf}}, halving) == "--ss");
}

TEST_CASE("the mean over the runs of a setting counts, once all have a loss", "[sweep]") {
  const Halving halving{.steps = {100}, .reduction_factor = 2};
  std::vector<SweepRun> runs = runs_with({{1}, {5}, {2}, {3}});
  runs[1].setting = 0;
  runs[2].setting = runs[3].setting = 1;
  CHECK(decided(runs, halving) == "ss--");
  runs = runs_with({{1}, {}, {2}, {3}});
  runs[1].setting = 0;
  runs[2].setting = runs[3].setting = 1;
  CHECK(decided(runs, halving) == "w1ww");
}

TEST_CASE("a run that has ended stays as it is", "[sweep]") {
  std::vector<SweepRun> runs = runs_with({{9}, {1}});
  runs[0].status = RunStatus::done;
  const Halving halving{.steps = {100}, .reduction_factor = 2};
  CHECK(decided(runs, halving) == "--");
  CHECK(runs[0].status == RunStatus::done);
}

TEST_CASE("losses at the steps of halving are those that the checkpoint keeps", "[sweep]") {
  const TemporaryDirectory directory;
  const fs::path& run = directory.path();
  const Halving halving{.steps = {10, 20, 30}, .reduction_factor = 2};
  const auto losses = [&](const RunState& state, bool ended) {
    return halving_losses(halving, run, state, ended);
  };
  RunState state;
  CHECK(losses(state, false).empty());
  CHECK(losses(state, true) == std::vector<double>{kInf, kInf, kInf});
  CHECK(halving_losses({}, run, state, true).empty());
  state.step = 15;
  state.stops = {{10, 5}};
  state.validation.emplace().loss = 4;
  CHECK(losses(state, false) == std::vector<double>{5});
  CHECK(losses(state, true) == std::vector<double>{5, 4, 4});
  // The log has those of a run that did not stop there; it overrules no checkpoint.
  state.step = 20;
  CHECK_THROWS_WITH(
      losses(state, false),
      run.string() +
          ": has no validation loss of step 20, by which halving decides, in its checkpoint or metrics.jsonl; restore the file, or remove the run, to train it again");
  write_file(
      run / "metrics.jsonl",
      "{\"step\":10,\"split\":\"validation\",\"loss\":8}\n{\"step\":20,\"split\":\"train\",\"loss\":7}\n"
      "{\"step\":20,\"split\":\"validation\",\"loss\":null}\n");
  CHECK_THROWS_AS(losses(state, false), CheckpointError);
  write_file(
      run / "metrics.jsonl",
      "{\"step\":10,\"split\":\"validation\",\"loss\":8}\n{\"step\":20,\"split\":\"validation\",\"loss\":3}\n"
      "{\"step\":30,\"split\":\"validation\",\"loss\":2}\n");
  CHECK(losses(state, false) == std::vector<double>{5, 3});
  CHECK(losses(state, true) == std::vector<double>{5, 3, 4});
}
