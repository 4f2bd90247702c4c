// The end of training, the checkpoints that remain, and reports of leaks and shared sequences.
#include <algorithm>
#include <cmath>
#include <set>

#include "catch.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/config/small_config.h"
#include "train/files/temporary_directory.h"
#include "train/runs/run_files.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

Config evaluated(std::int64_t steps, std::int64_t every) {
  Config config = small_config();
  config.train.steps = steps;
  config.train.evaluate_every = every;
  return config;
}

std::vector<EvalResult> validations(const Config& config) {
  struct ValidationRecorder : TrainObserver {
    void on_validation(std::int64_t, const EvalResult& report) override { reports.push_back(report); }
    std::vector<EvalResult> reports;
  } recorder;
  train(config, {.directory = "", .resume = false, .observer = &recorder});
  return recorder.reports;
}

}  // namespace

TEST_CASE("without an interval, evaluations are up to twenty and take little of the time", "[train]") {
  TrainConfig config{.steps = 1000, .batch = 128};
  CHECK(evaluation_interval(config, 1000) == 50);
  CHECK(evaluation_interval(config, 1300) == 50);
  CHECK(evaluation_interval(config, 1400) == 100);
  CHECK(evaluation_interval(config, 0) == 50);
  config.steps = 1001;
  CHECK(evaluation_interval(config, 1000) == 100);
  config.steps = 20;
  CHECK(evaluation_interval(config, 25) == 1);
  config.batch = 1;
  CHECK(evaluation_interval(config, 3000) == 20000);
  CHECK(evaluation_interval(config, 1'100'000'000) == 10'000'000'000);
  config.patience = 2;
  CHECK(evaluation_interval(config, 3000) == 1);
  config.patience = 0;
  config.target.loss = 0.1;
  CHECK(evaluation_interval(config, 3000) == 1);
  for (const std::int64_t every : {0, 7}) {
    config.evaluate_every = every;
    CHECK(evaluation_interval(config, 3000) == every);
  }
  CHECK(validations(evaluated(40, kAuto)).size() == 4);  // 10: 40 sequences are a sixth of ten batches
  CHECK(validations(evaluated(40, 0)).size() == 1);
}

TEST_CASE("training stops once the target is reached, and reports a missed one", "[train]") {
  Config config = evaluated(40, 5);
  const std::vector<EvalResult> all = validations(config);
  REQUIRE(all.size() == 8);
  REQUIRE(all[3].loss < all[2].loss);

  config.train.target.loss = all[3].loss;
  TrainResult result = train(config);
  CHECK(result.steps == 20);
  CHECK(result.stopped == Stopped::at_target);
  CHECK_FALSE(result.target_missed);
  CHECK(result.test.has_value());

  config.train.target.loss = 1e-9;
  result = train(config);
  CHECK(result.steps == 40);
  CHECK(result.stopped == Stopped::at_last_step);
  CHECK(result.target_missed);
  CHECK(to_json(result)["target_missed"] == true);

  config.train.target = {.accuracy = all.back().accuracy, .loss = 0};
  CHECK_FALSE(train(config).target_missed);
  config.train.target.loss = 1e-9;  // both are wanted
  CHECK(train(config).target_missed);
}

TEST_CASE("training stops when patience ends", "[train]") {
  Config config = evaluated(40, 2);
  config.train.optimizer.lr = 1e-30;  // nothing changes, so nothing gets better
  config.train.patience = 3;
  config.train.optimizer.name = OptimizerKind::sgd;
  const TrainResult result = train(config);
  CHECK(result.stopped == Stopped::out_of_patience);
  CHECK(result.steps == 2 * (1 + config.train.patience));
  CHECK(result.best_step == 2);
  config.train.patience = 0;
  CHECK(train(config).steps == 40);
}

TEST_CASE("the best checkpoint is that of the lowest validation loss", "[train]") {
  const TemporaryDirectory directory;
  Config config = evaluated(40, 4);
  config.train.optimizer.lr = 0.3;  // up and down
  const fs::path run = directory / "run";
  const TrainResult result = train(config, {.directory = run.string()});
  double lowest = 1e9;
  for (const Json& line : metrics_of(run))
    if (line["split"] == "validation") lowest = std::min(lowest, line["loss"].get<double>());
  REQUIRE(result.best_step < 40);
  CHECK(result.best_loss == lowest);
  CHECK(evaluate(open_run(run, {}, "best"), Split::validation).loss == lowest);
  CHECK(evaluate(open_run(run, {}, "final"), Split::validation).loss == result.validation->loss);
  CHECK(evaluate(open_run(run), Split::validation).loss == result.validation->loss);
  CHECK_THROWS_WITH(open_run(run, {}, "17"),
                    ContainsSubstring("step-17.safetensors: no such checkpoint; the run has final, best"));
}

TEST_CASE("the last two checkpoints stay, and a log-spaced series if asked for", "[train]") {
  const TemporaryDirectory directory;
  Config config = evaluated(25, 0);
  config.train.checkpoint_every = 4;
  for (const bool series : {false, true}) {
    config.train.checkpoint_series = series;
    const fs::path run = directory / (series ? "series" : "two");
    train(config, {.directory = run.string()});
    std::vector<std::string> names;
    for (const auto& [name, content] : tree(run / "checkpoints")) names.push_back(name);
    const std::vector<std::string> two{"best.safetensors", "final.safetensors", "step-24.safetensors"};
    const std::vector<std::string> all{"best.safetensors",    "final.safetensors",  "step-1.safetensors",
                                       "step-10.safetensors", "step-2.safetensors", "step-20.safetensors",
                                       "step-24.safetensors", "step-5.safetensors"};
    CHECK(names == (series ? all : two));
  }
  CHECK(open_run(directory / "series", {}, "10").weights.filename() == "step-10.safetensors");
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 0; step <= 1000; ++step)
    if (in_series(step)) steps.push_back(step);
  CHECK(steps == std::vector<std::int64_t>{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000});
}

TEST_CASE("with no interval, only the end is kept", "[train]") {
  const TemporaryDirectory directory;
  Config config = evaluated(9, 0);
  config.train.checkpoint_every = 0;
  config.data.validation = 0;
  train(config, {.directory = (directory / "run").string()});
  CHECK(tree(directory / "run" / "checkpoints").size() == 1);
}

TEST_CASE("a split or its first sequences can be measured, training data too", "[train]") {
  const TemporaryDirectory directory;
  train(evaluated(9, 0), {.directory = (directory / "run").string()});
  const ModelSource source = open_run(directory / "run");
  CHECK(evaluate(source, Split::train).sequences == 600);
  CHECK(evaluate(source, Split::train, 50).sequences == 50);
  CHECK(evaluate(source, Split::test, 1000).sequences == 60);
  const ModelSource longer = open_run(directory / "run", {"task.length=9", "train.seed=7"});
  CHECK(evaluate(longer, Split::test).sequences == 60);
  CHECK(evaluate(longer, Split::test).loss != evaluate(source, Split::test).loss);
}

TEST_CASE("sequences that splits share are counted", "[train]") {
  Config config = evaluated(2, 0);
  CHECK(train(config).shared_test.total() == 0);
  config.task = {.name = "copy", .symbols = 3, .length = 4};  // 81 sequences
  config.data = {.train = 600, .validation = 40, .test = 60};
  const TrainResult result = train(config);
  CHECK(result.shared_validation.equal_lines >= 38);  // 600 draws leave out e^-7.4 of them
  CHECK(result.shared_test.equal_lines >= 57);
  CHECK(to_json(result)["shared_with_training"]["test"] == result.shared_test.equal_lines);
  config.data.train = 24;
  const Dataset data = make_dataset(config);
  std::set<std::vector<std::int32_t>> seen;
  Example example;
  for (std::int64_t i = 0; i < 24; ++i) {
    data.example(Split::train, i, example);
    seen.insert(example.input);
  }
  std::int64_t shared = 0;
  for (std::int64_t i = 0; i < 60; ++i) {
    data.example(Split::test, i, example);
    shared += seen.contains(example.input) ? 1 : 0;
  }
  CHECK((shared > 5 && shared < 50));
  CHECK(data.shared_with_training(Split::test).equal_lines == shared);
}

TEST_CASE("a loss below the floor on fresh sequences is a leak", "[train]") {
  Config config = evaluated(300, 0);
  config.task = {.name = "induction", .symbols = 8, .length = 4};
  config.data = {.train = 0, .validation = 1000, .test = 1000};
  config.model.d_model = 32;
  config.train.optimizer.lr = 3e-3;
  config.model.attention.mask = Mask::none;  // every answer stands one position on; the reader refuses this
  const TrainResult leaking = train(config);
  const double floor = make_dataset(config).task().floor(config.task);
  REQUIRE(leaking.test->leak.has_value());
  CHECK(*leaking.test->leak == floor);
  CHECK(leaking.test->loss < floor);
  CHECK(to_json(*leaking.test)["leak"]["lowest_possible_loss"] == floor);

  config.model.attention.mask = Mask::causal;
  const TrainResult sound = train(config);
  CHECK_FALSE(sound.validation->leak.has_value());
  CHECK_FALSE(sound.test->leak.has_value());
  CHECK(sound.test->loss > floor);
  CHECK(sound.test->loss_error > 0);
}

TEST_CASE("a resume finishes the pruning that a kill cut short", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", checkpoints = run / "checkpoints";
  Config config = evaluated(9, 4);
  config.train.checkpoint_every = 3;
  train(config, {.directory = run.string(), .stop_after = 3});
  const std::string extra = read_file(checkpoints / "step-3.safetensors");
  const TrainOptions options{.directory = run.string(), .resume = true};
  train(config, options);
  const auto pruned = tree(checkpoints);
  REQUIRE_FALSE(pruned.contains("step-3.safetensors"));
  const auto kill_before_pruning = [&] { write_file(checkpoints / "step-3.safetensors", extra); };
  kill_before_pruning();
  train(config, options);
  CHECK(tree(checkpoints) == pruned);

  // Reading does not.
  kill_before_pruning();
  CHECK(evaluate(open_run(run, {}, "3"), Split::test).sequences > 0);
  open_run(run);
  CHECK(tree(checkpoints).contains("step-3.safetensors"));
}
