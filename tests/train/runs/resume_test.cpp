// Runs that were stopped in the middle, or damaged, and go on.
#include <fstream>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/config/small_config.h"
#include "train/files/checkpoint.h"
#include "train/files/lock.h"
#include "train/files/temporary_directory.h"
#include "train/runs/run_files.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

// Dropout, fresh data, a schedule: everything that depends on the step.
Config long_config() {
  Config config = rich_config();
  config.train.steps = 17;
  config.train.evaluate_every = 4;
  config.train.checkpoint_every = 3;
  return config;
}

// Stops like a kill, or like a signal, once that step is done.
struct Stopper : TrainObserver {
  explicit Stopper(std::int64_t last, bool kill = false) : last_step(last), kills(kill) {}
  void on_start(const OpenConfig&, const TrainResult& so_far) override { first_step = so_far.steps; }
  void on_step(const StepReport& report) override {
    step = report.step;
    if (kills && step == last_step) throw Error("killed");
  }
  void on_damaged(const std::string& reason) override { damaged.push_back(reason); }
  bool wants_stop() override { return step >= last_step; }
  std::int64_t last_step, first_step = 0, step = 0;
  bool kills;
  std::vector<std::string> damaged;
};

TrainResult resume(const Config& config, const fs::path& run, TrainObserver* observer = nullptr) {
  return train(config, {.directory = run.string(), .resume = true, .observer = observer});
}

void interrupt(const Config& config, const fs::path& run, std::int64_t step) {
  Stopper stopper(step);
  CHECK(resume(config, run, &stopper).stopped == Stopped::interrupted);
}

void kill(const Config& config, const fs::path& run, std::int64_t step) {
  Stopper killer(step, true);
  CHECK_THROWS_WITH(resume(config, run, &killer), Equals("killed"));
}

std::vector<std::string> checkpoints(const fs::path& run) {
  std::vector<std::string> names;
  for (const auto& [name, content] : tree(run / "checkpoints")) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("a run that was stopped anywhere ends as if it never was", "[train][slow]") {
  const TemporaryDirectory directory;
  for (const OptimizerKind optimizer : {OptimizerKind::adamw, OptimizerKind::sgd}) {
    Config config = long_config();
    config.train.optimizer.name = optimizer;
    const fs::path whole = directory / ("whole" + std::to_string(static_cast<int>(optimizer)));
    const TrainResult expected = train(config, {.directory = whole.string()});
    for (std::int64_t step = 1; step <= 17; ++step) {
      CAPTURE(step, static_cast<int>(optimizer));
      const fs::path run = directory / "run";
      fs::remove_all(run);
      if (step % 2 == 0) {
        interrupt(config, run, step);
      } else {
        kill(config, run, step);
      }
      config.train.threads = step % 3 == 0 ? 2 : 1;
      const TrainResult result = resume(config, run);
      CHECK(result.weights_hash == expected.weights_hash);
      CHECK(result.steps == 17);
      CHECK(result.train.loss == expected.train.loss);
      CHECK(result.best_step == expected.best_step);
      CHECK(timeless_metrics(run) == timeless_metrics(whole));
      if (step != 16) CHECK(checkpoints(run) == checkpoints(whole));  // there the stop left a newer one
    }
  }
}

TEST_CASE("a run that is stopped again and again still ends the same", "[train]") {
  const TemporaryDirectory directory;
  const TrainResult expected = train(long_config(), {.directory = (directory / "whole").string()});
  for (const std::int64_t step : {1, 2, 5, 5, 9, 10, 16}) kill(long_config(), directory / "run", step);
  CHECK(resume(long_config(), directory / "run").weights_hash == expected.weights_hash);
  CHECK(timeless_metrics(directory / "run") == timeless_metrics(directory / "whole"));
}

TEST_CASE("a run that has been stopped after a step keeps the checkpoint before it", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  for (int i = 0; i < 2; ++i) {
    const TrainResult result =
        train(long_config(), {.directory = run.string(), .resume = true, .stop_after = 7});
    CHECK(result.stopped == Stopped::interrupted);
    CHECK(result.steps == 7);
    CHECK(checkpoints(run) ==
          std::vector<std::string>{"best.safetensors", "step-6.safetensors", "step-7.safetensors"});
  }
}

TEST_CASE("resuming starts at the newest checkpoint, or at the beginning", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  kill(long_config(), run, 2);  // before the first checkpoint
  Stopper second(8, true);
  CHECK_THROWS(resume(long_config(), run, &second));
  CHECK(second.first_step == 0);
  CHECK(checkpoints(run) ==
        std::vector<std::string>{"best.safetensors", "step-3.safetensors", "step-6.safetensors"});
  Stopper third(11);
  resume(long_config(), run, &third);
  CHECK(third.first_step == 6);
  CHECK(checkpoints(run) ==
        std::vector<std::string>{"best.safetensors", "step-11.safetensors", "step-9.safetensors"});
  CHECK_FALSE(fs::exists(run / "summary.json"));
}

TEST_CASE("a damaged newest checkpoint is set aside and the one before it used", "[train]") {
  const TemporaryDirectory directory;
  const TrainResult expected = train(long_config(), {.directory = (directory / "whole").string()});
  const auto truncate = [](std::string text) { return text.substr(0, text.size() / 2); };
  const auto flip = [](std::string text) {
    text[text.size() - 5] = static_cast<char>(text[text.size() - 5] ^ 4);
    return text;
  };
  const auto flip_state = [](std::string text) {
    text[text.find("best_loss") + 14] ^= 1;
    return text;
  };
  const auto empty = [](const std::string&) { return std::string(); };
  int number = 0;
  for (const std::function<std::string(std::string)>& damage :
       std::vector<std::function<std::string(std::string)>>{truncate, flip, flip_state, empty}) {
    CAPTURE(number);
    const fs::path run = directory / ("run" + std::to_string(number++));
    kill(long_config(), run, 8);
    const fs::path newest = run / "checkpoints/step-6.safetensors";
    write_file(newest, damage(read_file(newest)));
    Stopper observer(100);
    CHECK(resume(long_config(), run, &observer).weights_hash == expected.weights_hash);
    CHECK(observer.first_step == 3);
    REQUIRE(observer.damaged.size() == 1);
    CHECK_THAT(observer.damaged[0], StartsWith(newest.string() + ": "));
    CHECK(fs::exists(newest.string() + ".damaged"));
    CHECK(timeless_metrics(run) == timeless_metrics(directory / "whole"));
  }
}

TEST_CASE("patience is resumed", "[train]") {
  const TemporaryDirectory directory;
  Config config = long_config();
  config.train.optimizer.lr = 1e-30;  // nothing gets better
  config.train.evaluate_every = 2;
  config.train.patience = 3;
  const TrainResult whole = train(config, {.directory = (directory / "whole").string()});
  CHECK(whole.steps == 8);
  interrupt(config, directory / "run", 5);
  const TrainResult resumed = resume(config, directory / "run");
  CHECK(resumed.stopped == Stopped::out_of_patience);
  CHECK(resumed.steps == 8);
}

TEST_CASE("a checkpoint that cannot be read is not taken for damaged", "[train]") {
  const TemporaryDirectory directory;
  const TrainResult expected = train(long_config(), {.directory = (directory / "whole").string()});
  const fs::path run = directory / "run", newest = run / "checkpoints/step-6.safetensors";
  kill(long_config(), run, 8);
  fs::rename(newest, directory / "aside");
  fs::create_directory(newest);
  CHECK_THROWS_WITH(resume(long_config(), run), EndsWith("cannot be read: Is a directory"));
  CHECK_FALSE(fs::exists(newest.string() + ".damaged"));
  fs::remove(newest);
  fs::rename(directory / "aside", newest);
  CHECK(resume(long_config(), run).weights_hash == expected.weights_hash);
}

TEST_CASE("with every other checkpoint damaged, a run resumes from the best, or starts again", "[train]") {
  const TemporaryDirectory directory;
  const TrainResult expected = train(long_config(), {.directory = (directory / "whole").string()});
  const std::vector<const char*> names = {"step-3.safetensors", "step-6.safetensors", "best.safetensors"};
  for (const std::size_t damaged : {std::size_t{2}, std::size_t{3}}) {
    const fs::path run = directory / ("run" + std::to_string(damaged));
    kill(long_config(), run, 8);
    for (std::size_t i = 0; i < damaged; ++i) write_file(run / "checkpoints" / names[i], "nothing");
    Stopper observer(100);
    CHECK(resume(long_config(), run, &observer).weights_hash == expected.weights_hash);
    CHECK(observer.first_step == (damaged == 2 ? 4 : 0));
    CHECK(observer.damaged.size() == damaged);
    CHECK(timeless_metrics(run) == timeless_metrics(directory / "whole"));
  }
}

TEST_CASE("resuming with another config is refused, field by field, and changes nothing", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  kill(long_config(), run, 8);
  const auto before = tree(run);
  Config other = long_config();
  other.train.optimizer.lr = 0.25;
  other.model.layers = 3;
  other.train.steps = 20;  // this one may change
  CHECK_THROWS_AS(resume(other, run), ConfigError);
  CHECK_THROWS_WITH(resume(other, run),
                    ContainsSubstring("model.layers: 2 in the run, 3 in this config\n") &&
                        ContainsSubstring("train.optimizer.lr: 0.003 in the run, 0.25 in this config\n") &&
                        !ContainsSubstring("train.steps"));
  CHECK(tree(run) == before);
}

TEST_CASE("steps and logging may change on a resume", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  Config config = long_config();
  config.train.schedule.name = ScheduleKind::constant;  // does not depend on the number of steps
  config.train.steps = 8;
  CHECK(resume(config, run).steps == 8);
  CHECK(fs::exists(run / "summary.json"));
  config.train.steps = 17;
  config.train.checkpoint_every = 5;
  const TrainResult longer = resume(config, run);
  CHECK(longer.steps == 17);
  CHECK(longer.weights_hash == train(config).weights_hash);
  CHECK(to_yaml(load_config((run / "config.yaml").string())) == to_yaml(config));
  config.train.steps = 10;
  CHECK_THROWS_AS(resume(config, run), ConfigError);
  CHECK_THROWS_WITH(resume(config, run), ContainsSubstring("17 steps"));
}

TEST_CASE("a finished run reports the same again", "[train]") {
  const TemporaryDirectory directory;
  const TrainResult first = resume(long_config(), directory / "run");
  const std::string metrics = timeless_metrics(directory / "run");
  Stopper observer(100);
  const TrainResult second = resume(long_config(), directory / "run", &observer);
  CHECK(observer.first_step == 17);
  CHECK(observer.step == 0);
  CHECK(second.weights_hash == first.weights_hash);
  CHECK(second.test->loss == first.test->loss);
  CHECK(second.validation->loss == first.validation->loss);
  CHECK(timeless_metrics(directory / "run") == metrics);
}

TEST_CASE("a run that was killed before it had a config begins again", "[train]") {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "run" / "checkpoints");
  write_file(directory / "run" / "config.yaml.77-0.tmp", "task: {na");
  CHECK_NOTHROW(resume(long_config(), directory / "run"));
  CHECK_FALSE(fs::exists(directory / "run" / "config.yaml.77-0.tmp"));
}

TEST_CASE("a run in use is refused, and an old one is not overwritten", "[train]") {
  const TemporaryDirectory directory;
  kill(long_config(), directory / "run", 4);
  const auto before = tree(directory / "run");
  {
    const DirectoryLock holder(directory / "run");
    CHECK_THROWS_AS(resume(long_config(), directory / "run"), CheckpointError);
    CHECK_THROWS_WITH(resume(long_config(), directory / "run"), ContainsSubstring(": in use by process "));
  }
  CHECK_THROWS_WITH(train(long_config(), {.directory = (directory / "run").string()}),
                    ContainsSubstring("or resume this run with --resume"));
  CHECK(tree(directory / "run") == before);
}

TEST_CASE("the seconds of all sessions of a run add up", "[train]") {
  const TemporaryDirectory directory;
  const Config config = long_config();
  const fs::path run = directory / "run", checkpoint = run / "checkpoints/step-5.safetensors";
  interrupt(config, run, 5);
  {
    const SafetensorsFile file(checkpoint);
    Trainer trainer(config);
    load_checkpoint(file, trainer.model().parameters(), trainer.optimizer());
    auto metadata = file.metadata();
    Json state = Json::parse(metadata.at("state"));
    state["seconds"] = 1e6;  // the first session was a long one
    metadata["state"] = json_text(state);
    save_weights(checkpoint, trainer.model().parameters(), metadata, &trainer.optimizer());
  }
  CHECK(resume(config, run).seconds > 1e6);
  const std::vector<Json> metrics = metrics_of(run);
  CHECK(metrics.back()["seconds"] > 1e6);
}
