// What train.log_heads adds to a run.
#include <algorithm>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/config/small_config.h"
#include "train/files/temporary_directory.h"
#include "train/runs/run_files.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

Config head_log_config() {
  Config config = rich_config();
  config.train.steps = 17;
  config.train.evaluate_every = 4;
  config.train.checkpoint_every = 3;
  config.train.log_heads = true;
  return config;
}

// Says something that every weight has its part in.
HeadLog sum_of_weights(const Config&) {
  return [](WeightsView weights) {
    double sum = 0;
    std::visit(
        [&](auto values) {
          for (const auto x : values) sum = 0.9 * sum + static_cast<double>(x);
        },
        weights);
    return Json{{"sum", sum}};
  };
}

TrainResult run(const Config& config, const fs::path& directory, TrainObserver* observer = nullptr) {
  return train(config, {.directory = directory.string(),
                        .resume = true,
                        .observer = observer,
                        .make_head_log = sum_of_weights});
}

struct Killer : TrainObserver {
  explicit Killer(std::int64_t step) : last(step) {}
  void on_step(const StepReport& report) override {
    if (report.step == last) throw Error("killed");
  }
  std::int64_t last;
};

std::vector<std::string> order_of(const fs::path& directory) {
  std::vector<std::string> order;
  for (const Json& line : metrics_of(directory))
    order.push_back(line["split"].get<std::string>() + " " + json_text(line["step"]));
  return order;
}

std::vector<std::int64_t> heads_steps(const fs::path& directory) {
  std::vector<std::int64_t> steps;
  for (const Json& line : metrics_of(directory))
    if (line["split"] == "heads") steps.push_back(line["step"]);
  return steps;
}

}  // namespace

TEST_CASE("logging steps are evenly spaced by logarithm, 20 a decade", "[train]") {
  std::vector<std::int64_t> steps;
  for (std::int64_t step = -3; step <= 100'000; ++step)
    if (is_logging_step(step)) steps.push_back(step);
  CHECK(std::vector<std::int64_t>(steps.begin(), steps.begin() + 35) ==
        std::vector<std::int64_t>{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,  14,  16,  18,  20, 22,
                                  25, 28, 31, 35, 40, 45, 50, 56, 63, 71, 80, 90, 100, 112, 125, 140, 160});
  for (std::size_t i = 7; i < steps.size(); ++i)
    CHECK(static_cast<double>(steps[i]) <= 1.17 * static_cast<double>(steps[i - 1]));
  CHECK(std::ranges::count_if(steps, [](std::int64_t s) { return s >= 1000 && s < 10'000; }) == 20);
  CHECK(std::ranges::count_if(steps, [](std::int64_t s) { return s >= 10'000 && s < 100'000; }) == 20);
  CHECK(is_logging_step(1'000'000'000));
}

TEST_CASE("with log_heads a run has lines of split heads, the last one at its end", "[train]") {
  const TemporaryDirectory directory;
  Config config = head_log_config();
  config.train.steps = 3;
  run(config, directory / "three");
  CHECK(order_of(directory / "three") == std::vector<std::string>{"heads 0", "train 1", "heads 1", "train 2",
                                                                  "heads 2", "train 3", "heads 3",
                                                                  "validation 3", "test 3"});
  const std::vector<Json> lines = metrics_of(directory / "three");
  const Json line = *std::ranges::find(lines, Json("heads"), [](const Json& each) { return each["split"]; });
  CHECK(line.begin().key() == "step");
  CHECK(line.contains("sum"));
  CHECK(std::prev(line.end()).key() == "seconds");
  config.train.steps = 17;  // which is no logging step
  run(config, directory / "whole");
  CHECK(heads_steps(directory / "whole") ==
        std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17});
}

TEST_CASE("log_heads only adds lines", "[train]") {
  const TemporaryDirectory directory;
  Config config = head_log_config();
  const TrainResult on = run(config, directory / "on");
  config.train.log_heads = false;
  const TrainResult off = run(config, directory / "off");
  CHECK(on.weights_hash == off.weights_hash);
  // The first line states the run.
  const auto others = [](const fs::path& run) {
    std::vector<Json> lines = metrics_of(run);
    std::erase_if(lines, [](const Json& line) { return line["split"] == "heads"; });
    for (Json& line : lines) {
      CHECK(line.erase("seconds") == 1);
      line.erase("run");
    }
    return lines;
  };
  CHECK(others(directory / "on") == others(directory / "off"));
}

TEST_CASE("with log_heads a run that is stopped anywhere ends as if it never was", "[train][slow]") {
  const TemporaryDirectory directory;
  const TrainResult expected = run(head_log_config(), directory / "whole");
  for (std::int64_t step = 1; step <= 17; ++step) {
    CAPTURE(step);
    const fs::path path = directory / ("run" + std::to_string(step));
    Killer killer(step);
    CHECK_THROWS_WITH(run(head_log_config(), path, &killer), Equals("killed"));
    CHECK(run(head_log_config(), path).weights_hash == expected.weights_hash);
    CHECK(timeless_metrics(path) == timeless_metrics(directory / "whole"));
  }
  CHECK(run(head_log_config(), directory / "whole").steps == 17);
  CHECK(timeless_metrics(directory / "whole") == timeless_metrics(directory / "run1"));
}

TEST_CASE("with log_heads a finished run can be continued", "[train]") {
  const TemporaryDirectory directory;
  Config config = head_log_config();
  config.train.schedule.name = ScheduleKind::constant;
  config.train.evaluate_every = 0;
  config.train.steps = 13;
  run(config, directory / "run");
  CHECK(heads_steps(directory / "run").back() == 13);
  config.train.steps = 17;
  run(config, directory / "run");
  CHECK(std::ranges::count(heads_steps(directory / "run"), 13) == 0);
}

TEST_CASE("heads are logged only with log_heads, and only to a run directory", "[train]") {
  const TemporaryDirectory directory;
  int asked = 0;
  const auto count = [&](const Config& config) {
    ++asked;
    return sum_of_weights(config);
  };
  Config config = head_log_config();
  train(config, {.directory = "", .make_head_log = count});
  config.train.log_heads = false;
  train(config, {.directory = (directory / "off").string(), .make_head_log = count});
  CHECK(asked == 0);
  config.train.log_heads = true;
  train(config, {.directory = (directory / "on").string(), .make_head_log = count});
  CHECK(asked == 1);
}

TEST_CASE("logging heads without a log is refused before anything is written", "[train]") {
  const TemporaryDirectory directory;
  const TrainOptions options{.directory = (directory / "run").string()};
  CHECK_THROWS_AS(train(head_log_config(), options), ConfigError);
  CHECK_THROWS_WITH(train(head_log_config(), options), ContainsSubstring("train.log_heads: "));
  CHECK_FALSE(fs::exists(directory / "run"));
}
