// Sweeps: their plan, their statistics, and their processes, with a shell script in the place of thimble.
#include "program/sweep/run_sweep.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>
#include <thread>

#include "catch.h"
#include "program/sweep/run_queue.h"
#include "program/sweep/workshop.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "train/files/lock.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

SweepRun run_with(std::size_t setting, const Json& result) {
  SweepRun run;
  run.setting = setting;
  run.result = result;
  return run;
}

const SweepRun& named(const std::vector<SweepRun>& runs, std::string_view name) {
  const auto found = std::ranges::find(runs, name, &SweepRun::name);
  if (found == runs.end()) throw std::logic_error("no run " + std::string(name));
  return *found;
}

}  // namespace

TEST_CASE("a plan has every setting with every seed, on one thread", "[sweep]") {
  const Workshop w(
      "list: [{model.norm: pre}, {model.norm: post}]\ngrid: {model.heads: [1, 2]}\nseeds: [7, 8]\n");
  const std::vector<SweepRun> runs = plan_runs(w.sweep);
  std::vector<std::string> names;
  for (const SweepRun& run : runs) names.push_back(run.name);
  CHECK(names == std::vector<std::string>{"001-norm_pre-heads_1-seed_7", "002-norm_pre-heads_1-seed_8",
                                          "003-norm_pre-heads_2-seed_7", "004-norm_pre-heads_2-seed_8",
                                          "005-norm_post-heads_1-seed_7", "006-norm_post-heads_1-seed_8",
                                          "007-norm_post-heads_2-seed_7", "008-norm_post-heads_2-seed_8"});
  const SweepRun& run = named(runs, "007-norm_post-heads_2-seed_7");
  CHECK(run.setting == 3);
  CHECK((run.config.model.norm == NormOrder::post && run.config.model.heads == 2));
  CHECK(run.config.train.seed == 7);
  CHECK(run.config.train.threads == 1);
}

TEST_CASE("the name of a run holds settings as a whole or not at all", "[sweep]") {
  const Workshop w(
      "list: [{model.d_model: 32, model.heads: 4, train.optimizer.lr: 5e-4, model.norm: pre, train.optimizer.weight_decay: 0.0125, train.batch: 16}]\n");
  CHECK(plan_runs(w.sweep)[0].name == "001-d_model_32-heads_4-lr_5e-4-norm_pre-weight_decay_0.0125-seed_42");
}

TEST_CASE("without seeds a run has the seed of its config", "[sweep]") {
  const Workshop w("grid: {train.seed: [5, 6]}\n");
  const std::vector<SweepRun> runs = plan_runs(w.sweep);
  CHECK(runs.size() == 2);
  CHECK(named(runs, "001-seed_5").config.train.seed == 5);
  CHECK(named(runs, "002-seed_6").config.train.seed == 6);
}

TEST_CASE("a sweep finds its directory again, another sweep has another", "[sweep]") {
  Workshop w;
  const fs::path first = sweep_directory(w.sweep, plan_runs(w.sweep));
  CHECK_THAT(first.string(), StartsWith("runs/sweep-s-") && !EndsWith("-2"));
  w.load();
  CHECK(sweep_directory(w.sweep, plan_runs(w.sweep)) == first);
  write_file(w.directory / "base.yaml", "model: {d_model: 16}\n");
  w.load();
  CHECK(sweep_directory(w.sweep, plan_runs(w.sweep)) != first);
}

TEST_CASE("a metric is taken over the results of one setting, where it is a number", "[sweep]") {
  const std::vector<SweepRun> runs{
      run_with(0, {{"test", {{"loss", 1.0}}}}),     run_with(0, nullptr),
      run_with(0, {{"test", {{"loss", nullptr}}}}), run_with(1, {{"test", {{"loss", 9.0}}}}),
      run_with(0, {{"test", {{"loss", 2.0}}}}),
  };
  const Spread values = metric_spread(runs, 0, "/test/loss");
  CHECK(values.count == 2);
  CHECK(values.mean == 1.5);
  CHECK(metric_spread(runs, 0, "/validation/loss").count == 0);
}

TEST_CASE("a sweep's metrics are summarized by setting, over the runs that have them", "[sweep]") {
  const Workshop w("grid: {model.heads: [1, 2]}\nseeds: [7, 8, 9]\n");
  std::vector<SweepRun> runs = plan_runs(w.sweep);
  const std::vector<double> losses{0.5, 3, 1, 7, 2, 4};
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].result = {{"validation", {{"loss", losses[i]}}}};
  runs[2].result["test"]["accuracy"] = 0.25;
  runs[4].status = RunStatus::failed;
  runs[5].status = RunStatus::missed_target;
  const Json json = to_json(w.sweep, runs, w.directory / "out");
  for (const std::size_t s : {0U, 1U}) {
    const double a = losses[3 * s], b = losses[3 * s + 1], c = losses[3 * s + 2], mean = (a + b + c) / 3;
    const auto of = [&](const char* what) {
      return json["settings"][s][what]["validation"]["loss"].get<double>();
    };
    CHECK(of("min") == std::min({a, b, c}));
    CHECK(of("max") == std::max({a, b, c}));
    CHECK_THAT(of("mean"), WithinAbs(mean, 1e-12));
    CHECK_THAT(of("sd"), WithinAbs(std::sqrt((a * a + b * b + c * c - 3 * mean * mean) / 2), 1e-12));
  }
  CHECK(json["settings"][0]["max"]["test"]["accuracy"] == 0.25);
  CHECK(json["settings"][0]["sd"]["test"]["accuracy"].is_null());
  CHECK_FALSE(json["settings"][1]["max"].contains("test"));
  CHECK(json["failed"] == 1);
}

TEST_CASE("a sweep runs every run and writes what came of it", "[sweep]") {
  const Workshop w;
  const SweepResult result = w.run();
  CHECK(statuses(result.runs) == "done, done, done, done");
  CHECK_FALSE(result.interrupted);
  const std::string run = (w.directory / "out/runs/004-heads_2-seed_8").string();
  CHECK_THAT(w.calls(),
             ContainsSubstring("train " + (w.directory / "base.yaml").string() +
                               " model.heads=2 train.seed=8 --threads 1 --quiet --out " + run + "\n"));
  const Json json = w.json();
  CHECK(json == sweep_json(w.sweep, result.runs, w.directory / "out"));
  CHECK(json["settings"].size() == 2);
  const Json& setting = json["settings"][1];
  CHECK(setting["overrides"] == Json{{"model.heads", 2}});
  CHECK(setting["runs"][1] == Json{{"seed", 8},
                                   {"directory", run},
                                   {"run", plan_runs(w.sweep)[3].identity},
                                   {"status", "done"},
                                   {"exit", 0},
                                   {"error", nullptr},
                                   {"result", parse_json(read_file(w.summary("004-heads_2-seed_8")))}});
  CHECK(setting["mean"] == Json{{"test", {{"loss", 0.5}}}, {"steps", 5.0}});
  CHECK(setting["sd"]["test"]["loss"] == 0.0);
  CHECK(json["failed"] == 0);
}

TEST_CASE("a run that fails stops no other one, and is resumed the next time", "[sweep]") {
  const Workshop w;
  w.script(
      "case $* in *heads=1*seed=8*) mkdir -p $out; echo first; echo 'thimble: too hot' >&2; exit 3;; esac; finish");
  const SweepResult result = w.run();
  CHECK(statuses(result.runs) == "done, failed, done, done");
  CHECK(named(result.runs, "002-heads_1-seed_8").error == "too hot");
  CHECK(named(result.runs, "002-heads_1-seed_8").exit == 3);
  CHECK(w.json()["failed"] == 1);
  CHECK(w.json()["settings"][0]["mean"]["steps"] == 5.0);
  CHECK(w.json()["settings"][0]["sd"]["steps"] == nullptr);

  fs::remove(w.directory / "calls");
  w.script("finish");
  CHECK(statuses(w.run().runs) == "done, done, done, done");
  CHECK_THAT(w.calls(),
             ContainsSubstring("heads=1 train.seed=8 ") && EndsWith("002-heads_1-seed_8 --resume\n"));
  CHECK(w.json()["failed"] == 0);
  fs::remove(w.directory / "calls");
  CHECK(statuses(w.run().runs) == "done, done, done, done");
  CHECK_FALSE(fs::exists(w.directory / "calls"));
}

TEST_CASE("a missed target is a result, and is remembered", "[sweep]") {
  const Workshop w;
  Json result = kResult;
  result["target_missed"] = true;
  write_file(w.summary("002-heads_1-seed_8"), summary_text(result, plan_runs(w.sweep)[1].identity));
  w.script("finish; case $* in *heads=1*seed=8*) echo missed; exit 1;; esac");
  CHECK(statuses(w.run().runs) == "done, missed target, done, done");
  CHECK(w.json()["settings"][0]["runs"][1]["result"]["steps"] == 5);
  CHECK(w.json()["failed"] == 0);
  w.script("exit 9");
  const SweepResult again = w.run();
  CHECK(statuses(again.runs) == "done, missed target, done, done");
  CHECK(named(again.runs, "002-heads_1-seed_8").exit == 1);
  CHECK(named(again.runs, "002-heads_1-seed_8").error == "missed");
  result.erase("target_missed");
  for (const char* split : {"validation", "test"}) {
    Json leak = result;
    leak[split] = {{"loss", 0.5}, {"leak", {{"lowest_possible_loss", 1}}}};
    write_file(w.directory / "out/runs/002-heads_1-seed_8/summary.json",
               summary_text(leak, plan_runs(w.sweep)[1].identity));
    CHECK(statuses(w.run().runs) == "done, missed target, done, done");
  }
}

TEST_CASE("a run without a result is a failure", "[sweep]") {
  const Workshop w("seeds: [7]\n");
  w.script("exit 0");
  CHECK(w.run().runs[0].error == "exit status 0");
  w.script("exit 1");
  CHECK(statuses(w.run().runs) == "failed");
  w.script("kill -SEGV $$");
  CHECK(w.run().runs[0].error == "ended by signal 11");
  w.script("mkdir -p $out; echo '{' >$out/summary.json");
  CHECK_THAT(w.run().runs[0].error, ContainsSubstring("/summary.json: not valid JSON at byte "));
  fs::remove(w.options.program);
  CHECK(w.run().runs[0].error == "the program cannot be run");
  CHECK(w.run().runs[0].exit == 127);
}

TEST_CASE("a sweep that was killed starts runs again that have not ended", "[sweep]") {
  const Workshop w("seeds: [7]\n");
  w.run();
  fs::remove(w.directory / "out/runs/001-seed_7/summary.json");
  fs::remove(w.directory / "calls");
  CHECK(statuses(w.run().runs) == "done");
  CHECK_THAT(w.calls(), EndsWith(" --resume\n"));
}

TEST_CASE("no more runs at a time than jobs", "[sweep]") {
  Workshop w;
  w.options.jobs = 1;
  w.script("mkdir \"$0.busy\" || exit 4; sleep 0.05; rmdir \"$0.busy\"; finish");
  CHECK(statuses(w.run().runs) == "done, done, done, done");
}

TEST_CASE("a limited number of runs is trained, and none that has failed before", "[sweep]") {
  Workshop w;
  w.options.jobs = 1;
  w.options.max_runs = 1;
  w.script("exit 3");
  CHECK(statuses(w.run().runs) == "failed, waiting, waiting, waiting");
  w.script("finish");
  w.options.repeat_failures = false;
  CHECK(statuses(w.run().runs) == "failed, done, waiting, waiting");
  w.options.max_runs = 0;
  CHECK(statuses(w.run().runs) == "failed, done, done, done");
  w.options.repeat_failures = true;
  CHECK(statuses(w.run().runs) == "done, done, done, done");
}

TEST_CASE("a run that another process has taken is left to it", "[sweep]") {
  Workshop w;
  w.options.max_runs = 4;
  fs::create_directories(w.directory / "out");
  write_file(w.directory / "out/sweep.json", json_text(sweep_json(w.sweep, plan_runs(w.sweep), "out")));
  fs::create_directories(w.directory / "out/runs");
  const auto taken = run_queue().take(w.directory / "out/runs/002-heads_1-seed_8");
  CHECK(statuses(w.run().runs) == "done, running, done, done");
  CHECK(w.json()["settings"][0]["runs"][1]["status"] == "running");
  CHECK_THAT(w.calls(), !ContainsSubstring("heads=1 train.seed=8"));
}

TEST_CASE("a sweep waits for the runs of others, and takes them over when they end", "[sweep][slow]") {
  Workshop w;
  fs::create_directories(w.directory / "out");
  write_file(w.directory / "out/sweep.json", json_text(sweep_json(w.sweep, plan_runs(w.sweep), "out")));
  fs::create_directories(w.directory / "out/runs");
  std::unique_ptr<TakenRun> taken = run_queue().take(w.directory / "out/runs/003-heads_2-seed_7");
  std::thread other([&] {
    while (!fs::exists(w.directory / "out/runs/004-heads_2-seed_8/summary.json"))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    taken.reset();
  });
  CHECK(statuses(w.run().runs) == "done, done, done, done");
  other.join();
  CHECK(w.directory.files() > 0);
}

TEST_CASE("a run is taken by one process, whose end frees it", "[sweep]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  std::unique_ptr<TakenRun> taken = run_queue().take(run);
  REQUIRE(taken != nullptr);
  CHECK(taken->renew());
  CHECK(run_queue().holder(run) == process_name());
  CHECK(run_queue().take(run) == nullptr);
  CHECK(run_queue().take(directory / "run2") != nullptr);
  taken.reset();
  CHECK(directory.files() == 0);
  CHECK(run_queue().holder(run).empty());
  CHECK_THROWS_AS(run_queue().take(directory / "none/run"), FileError);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::unique_ptr<TakenRun> held = run_queue().take(run);
    ::_exit(held != nullptr ? 0 : 1);  // without the destructor
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(fs::exists(directory / "run.lock"));
  CHECK(run_queue().take(run) != nullptr);
}

TEST_CASE("a run whose process is still saving is not started again until it has ended", "[sweep][slow]") {
  const Workshop w("seeds: [7]\n");
  w.script("mkdir -p $out; exit 130");
  CHECK(statuses(w.run().runs) == "interrupted");
  auto lock = std::make_unique<DirectoryLock>(w.directory / "out/runs/001-seed_7");
  w.script("[ ! -e $out/.lock ] || exit 5; finish");
  std::thread saving([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    lock.reset();
  });
  CHECK(statuses(w.run().runs) == "done");
  saving.join();
}

TEST_CASE("a signal lets the runs end, a second one ends them", "[sweep]") {
  Workshop w;
  w.options.jobs = 2;
  // One of the two sends it: a second signal would end them before they have saved.
  w.script(
      "trap 'mkdir -p $out; exit 130' INT; mkdir ${0%/*}/sent 2>&- && kill -INT $PPID; while :; do sleep 0.02; done");
  const SweepResult stopped = w.run();
  CHECK(stopped.interrupted);
  CHECK_THAT(statuses(stopped.runs), ContainsSubstring("interrupted") && EndsWith("waiting, waiting"));
  CHECK(w.json() == sweep_json(w.sweep, stopped.runs, w.directory / "out"));
  CHECK(w.json()["failed"] == 0);
  w.options.jobs = 1;
  w.script(
      "mkdir -p $out; trap 'kill -INT $PPID; kill -TERM $PPID' INT; kill -TERM $PPID; while :; do sleep 0.02; done");
  const SweepResult killed = w.run();
  CHECK(killed.interrupted);
  CHECK_THAT(statuses(killed.runs), StartsWith("interrupted, ") && EndsWith("waiting, waiting"));
  w.script("finish");
  CHECK(statuses(w.run().runs) == "done, done, done, done");
}
