// Successive halving: decisions from losses, and sweeps of a shell script whose result must not depend on jobs,
// on the order in which runs end, or on interruptions.
#include "program/sweep/halving.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.h"
#include "program/sweep/workshop.h"
#include "train/step/forward.h"

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

// A script that trains like thimble train, to what prepare() has made.
const std::string kTrainOne = R"(stop=40
for a; do case $a in --stop-after=*) stop=${a#*=};; esac; done
at() { mkdir -p $out; cp -r "$(dirname "$0")/prepared/$(basename "$out")-$1/." $out; }
at $stop
echo $stop >$out/step
[ $stop -lt 40 ] || finish)";

// Makes the checkpoints of all runs after steps 5, 10, 20 and 40: layers=N has validation loss |N - 4|, except that
// layers=4 is worst at step 10. At step 5, its end, a run has loss 0.
void prepare(const Workshop& w) {
  for (const SweepRun& run : plan_runs(w.sweep)) {
    const std::int64_t layers = run.config.model.layers;
    RunState state;
    state.run = run.identity;
    for (const std::int64_t step : {5, 10, 20, 40}) {
      state.step = step;
      state.validation.emplace().loss = step == 5 ? 0.0
                                        : layers == 4 && step == 10
                                            ? 9.0
                                            : std::abs(static_cast<double>(layers - 4));
      if (step == 10 || step == 20) state.stops[step] = state.validation->loss;
      Config config = run.config.values();
      config.train.target.loss = step == 5 ? 1 : 0;
      write_hand_made_checkpoint(w.directory / "prepared" / fmt::format("{}-{}", run.name, step), config,
                                 to_json(record_of(run.config)),
                                 step == 5 || step == 40 ? "final" : fmt::format("step-{}", step), state);
    }
  }
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

TEST_CASE("halving stops the same runs for any number of jobs and after interruptions", "[sweep][slow]") {
  const std::string expected = "stopped, stopped, done, stopped, done, stopped";
  for (const std::int64_t jobs : {1, 2, 5}) {
    Workshop w(kHalving);
    prepare(w);
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
  prepare(w);
  w.options.max_runs = 1;
  w.script(kTrainOne);
  for (int i = 0; i < 10; ++i) w.run();  // 6 to step 10, 3 to step 20, 2 to the end: one is missing
  CHECK(statuses(w.run().runs) == expected);
  std::string calls = w.calls();
  CHECK(std::ranges::count(calls, '\n') == 11);
}

TEST_CASE("a run that diverges is the worst, another failure decides nothing", "[sweep]") {
  Workshop w(kHalving);
  prepare(w);
  w.script("case $* in *layers=5*) mkdir -p $out; exit 3;; esac\n" + kTrainOne);
  CHECK(statuses(w.run().runs) == "stopped, done, done, stopped, failed, stopped");
  CHECK(w.json()["settings"][4]["runs"][0]["halving_losses"] == Json{nullptr, nullptr});
  fs::remove(w.directory / "calls");
  CHECK(statuses(w.run().runs) == "stopped, done, done, stopped, failed, stopped");
  CHECK_FALSE(fs::exists(w.directory / "calls"));  // it would diverge again

  const Workshop killed(kHalving);
  prepare(killed);
  killed.script("case $* in *layers=5*) kill -9 $$;; esac\n" + kTrainOne);
  CHECK(statuses(killed.run().runs) == "waiting, waiting, waiting, waiting, failed, waiting");
  killed.script(kTrainOne);
  CHECK(statuses(killed.run().runs) == "stopped, stopped, done, stopped, done, stopped");
}

TEST_CASE("a run that ends before a step of halving keeps its last loss", "[sweep]") {
  Workshop w(kHalving);
  prepare(w);
  w.script("case $* in *layers=1*) stop_at=5;; esac\n" + kTrainOne.substr(0, kTrainOne.find("at $stop")) +
           "[ -z \"$stop_at\" ] || { at 5; finish; exit 0; }\n" +
           kTrainOne.substr(kTrainOne.find("at $stop")));
  CHECK(statuses(w.run().runs) == "done, stopped, done, stopped, stopped, stopped");
}

TEST_CASE("a directory of a sweep with other halving is refused", "[sweep]") {
  Workshop w(kHalving);
  prepare(w);
  w.script(kTrainOne);
  w.run();
  std::string text = "config: base.yaml\n" + kHalving;
  text.replace(text.find("[10, 20]"), 8, "[10, 30]");
  write_file(w.directory / "s.yaml", text);
  w.load();
  CHECK_THAT(w.refusal(), ContainsSubstring("belongs to another sweep: its halving is {\"steps\":[10,20],"));
}
