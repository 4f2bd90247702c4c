// Successive halving: decisions from losses, and sweeps of a shell script whose result must not depend on jobs,
// on the order in which runs end, or on interruptions.
#include "program/sweep/halving.h"

#include <algorithm>
#include <limits>

#include "catch.h"
#include "program/sweep/workshop.h"

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

const std::string kHalving =
    "list: [{train.steps: 40, train.evaluate_every: 10}]\n"
    "grid: {model.layers: [1, 2, 3, 4, 5, 6]}\nhalving: {steps: [10, 20]}\n";

// A script that trains like thimble train: layers=N has validation loss |N - 4|, except that layers=4 is worst at
// step 10.
const std::string kTrainOne = R"(stop=40
for a; do case $a in --stop-after=*) stop=${a#*=};; model.layers=*) layers=${a#*=};; esac; done
mkdir -p $out
step=$(cat $out/step 2>/dev/null || echo 0)
while [ $step -lt $stop ]; do
  step=$((step + 10))
  loss=$((layers > 4 ? layers - 4 : 4 - layers))
  [ $layers.$step != 4.10 ] || loss=9
  echo "{\"step\":$step,\"split\":\"validation\",\"loss\":$loss}" >>$out/metrics.jsonl
  echo $step >$out/step
done
[ $stop -lt 40 ] || finish)";

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

TEST_CASE("losses at the steps of halving are those of evaluations", "[sweep]") {
  const TemporaryDirectory directory;
  const fs::path& run = directory.path();
  const Halving halving{.steps = {10, 20, 30}, .reduction_factor = 2};
  CHECK(halving_losses(halving, run, {}, false).empty());
  CHECK(halving_losses(halving, run, {}, true) == std::vector<double>{kInf, kInf, kInf});
  write_file(
      run / "metrics.jsonl",
      "{\"step\":10,\"split\":\"train\",\"loss\":7}\n{\"step\":5,\"split\":\"validation\",\"loss\":6}\n"
      "{\"step\":10,\"split\":\"validation\",\"loss\":5}\n{\"step\":15,\"split\":\"validation\",\"loss\":4}\n"
      "{\"step\":20,\"split\":\"validation\",\"lo");
  CHECK(halving_losses(halving, run, {}, false) == std::vector<double>{5});
  CHECK(halving_losses(halving, run, {}, true) == std::vector<double>{5, 4, 4});
  CHECK(halving_losses({}, run, {}, true).empty());
}

TEST_CASE("a loss that is not a number is the worst, and a step without an evaluation has none", "[sweep]") {
  const TemporaryDirectory directory;
  const fs::path& run = directory.path();
  const Halving halving{.steps = {10, 20, 30}, .reduction_factor = 2};
  write_file(run / "metrics.jsonl",
             "{\"step\":5,\"split\":\"validation\",\"loss\":6}\n"
             "{\"step\":10,\"split\":\"validation\",\"loss\":null}\n"
             "{\"step\":20,\"split\":\"validation\",\"loss\":3}\n"
             "{\"step\":25,\"split\":\"validation\",\"loss\":null}\n");
  CHECK(halving_losses(halving, run, {}, false) == std::vector<double>{kInf, 3});
  CHECK(halving_losses(halving, run, {}, true) == std::vector<double>{kInf, 3, kInf});
  CHECK(halving_losses({.steps = {7, 20}, .reduction_factor = 2}, run, {}, false).empty());
}

TEST_CASE("halving stops the same runs for any number of jobs and after interruptions", "[sweep][slow]") {
  const std::string expected = "stopped, stopped, done, stopped, done, stopped";
  for (const std::int64_t jobs : {1, 2, 5}) {
    Workshop w(kHalving);
    w.options.jobs = jobs;
    w.script(kTrainOne);
    // At step 10 layers 4 and 6, 5 and 3, 2 and 1 have losses 9 2 1 1 2 3: 3, 5 and 2 go on; at 20, 3 and 5.
    CHECK(statuses(w.run().runs) == expected);
    CHECK(w.json()["settings"][0]["runs"][0]["error"] == "validation loss 3 at step 10");
    CHECK(w.json()["settings"][0]["runs"][0]["halving_losses"] == Json{3.0});
    CHECK(w.json()["settings"][1]["runs"][0]["halving_losses"] == Json{2.0, 2.0});
    CHECK(w.json()["halving"] == Json{{"steps", {10, 20}}, {"reduction_factor", 2}});
    CHECK(read_file(w.directory / "out/runs/001-steps_40-evaluate_every_10-layers_1-seed_42/step") == "10\n");
    fs::remove(w.directory / "calls");
    CHECK(statuses(w.run().runs) == expected);
    CHECK_FALSE(fs::exists(w.directory / "calls"));
  }
  Workshop w(kHalving);
  w.options.max_runs = 1;
  w.script(kTrainOne);
  for (int i = 0; i < 10; ++i) w.run();  // 6 to step 10, 3 to step 20, 2 to the end: one is missing
  CHECK(statuses(w.run().runs) == expected);
  std::string calls = w.calls();
  CHECK(std::ranges::count(calls, '\n') == 11);
}

TEST_CASE("a run that diverges is the worst, another failure decides nothing", "[sweep]") {
  Workshop w(kHalving);
  w.script("case $* in *layers=5*) mkdir -p $out; exit 3;; esac\n" + kTrainOne);
  CHECK(statuses(w.run().runs) == "stopped, done, done, stopped, failed, stopped");
  CHECK(w.json()["settings"][4]["runs"][0]["halving_losses"] == Json{nullptr, nullptr});
  fs::remove(w.directory / "calls");
  CHECK(statuses(w.run().runs) == "stopped, done, done, stopped, failed, stopped");
  CHECK_FALSE(fs::exists(w.directory / "calls"));  // it would diverge again

  const Workshop killed(kHalving);
  killed.script("case $* in *layers=5*) kill -9 $$;; esac\n" + kTrainOne);
  CHECK(statuses(killed.run().runs) == "waiting, waiting, waiting, waiting, failed, waiting");
  killed.script(kTrainOne);
  CHECK(statuses(killed.run().runs) == "stopped, stopped, done, stopped, done, stopped");
}

TEST_CASE("a run that ends before a step of halving keeps its last loss", "[sweep]") {
  Workshop w(kHalving);
  w.script(
      "case $* in *layers=1*) mkdir -p $out; echo '{\"step\":5,\"split\":\"validation\",\"loss\":0}' >$out/metrics.jsonl; finish; exit 0;; esac\n" +
      kTrainOne);
  CHECK(statuses(w.run().runs) == "done, stopped, done, stopped, stopped, stopped");
}

TEST_CASE("a directory of a sweep with other halving is refused", "[sweep]") {
  Workshop w(kHalving);
  w.script(kTrainOne);
  w.run();
  std::string text = "config: base.yaml\n" + kHalving;
  text.replace(text.find("[10, 20]"), 8, "[10, 30]");
  write_file(w.directory / "s.yaml", text);
  w.load();
  CHECK_THAT(w.refusal(), ContainsSubstring("belongs to another sweep: its halving is {\"steps\":[10,20],"));
}
