// Runs: the files that train() writes and open_run() reads.
#include "thimble/train/run.h"
#include "thimble/train/train.h"

#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "thimble/train/safetensors.h"
#include "train/config/small_config.h"
#include "train/files/temporary_directory.h"
#include "train/runs/run_files.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

Config run_config() {
  Config config = small_config();
  config.train.steps = 6;
  config.train.evaluate_every = 4;
  return config;
}

struct Recorder : TrainObserver {
  void on_start(const OpenConfig&, const TrainResult& so_far) override { parameters = so_far.parameters; }
  void on_step(const StepReport& report) override { losses.push_back(report.loss); }
  void on_validation(std::int64_t step, const EvalResult&) override { validations.push_back(step); }
  std::int64_t parameters = 0;
  std::vector<double> losses;
  std::vector<std::int64_t> validations;
};

}  // namespace

TEST_CASE("a run writes its config, its metrics, its weights and a summary", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  Recorder recorder;
  const TrainResult result = train(run_config(), {.directory = run.string(), .observer = &recorder});

  std::vector<std::string> files;
  for (const auto& [name, content] : tree(run)) files.push_back(name);
  CHECK(files == std::vector<std::string>{"checkpoints", "checkpoints/best.safetensors",
                                          "checkpoints/final.safetensors", "config.yaml", "data.json",
                                          "metrics.jsonl", "summary.json"});
  CHECK(to_yaml(load_config((run / "config.yaml").string())) == to_yaml(run_config()));

  Trainer same(run_config());
  for (int step = 1; step <= 6; ++step)
    CHECK(recorder.losses.at(static_cast<std::size_t>(step - 1)) == same.step().loss);
  CHECK(result.weights_hash == same.model().parameters().hash());
  CHECK(result.steps == 6);
  CHECK(result.test->loss == same.evaluate(Split::test).loss);
  CHECK(result.validation->loss == same.evaluate(Split::validation).loss);
  CHECK(result.parameters == static_cast<std::int64_t>(same.model().parameters().count()));
  CHECK(recorder.parameters == result.parameters);
  CHECK(recorder.validations == std::vector<std::int64_t>{4, 6});
  CHECK(result.directory == run.string());
  CHECK(result.seconds > 0);

  Json summary = parse_json(read_file(run / "summary.json"));
  CHECK(summary.erase("run") == 1);
  CHECK(summary == to_json(result));
  CHECK(summary["weights_hash"] == result.weights_hash);
  CHECK(summary["test"]["accuracy"] == result.test->accuracy);
  const SafetensorsFile weights(run / "checkpoints/final.safetensors");
  CHECK(weights.metadata().at("weights_hash") == result.weights_hash);
  CHECK(weights.metadata().at("step") == "6");
  CHECK(weights.metadata().at("config") == to_yaml(run_config()));
  CHECK(weights.entries().size() == 3 * same.model().parameters().entries().size());  // with two moments
}

TEST_CASE("metrics have a line per step and per evaluation, in order", "[train]") {
  const TemporaryDirectory directory;
  const TrainResult result = train(run_config(), {.directory = (directory / "run").string()});
  const std::vector<Json> lines = metrics_of(directory / "run");
  std::vector<std::string> order;
  std::map<std::string, Json> loss;  // by split, of its last line
  for (const Json& line : lines) {
    const auto split = line["split"].get<std::string>();
    order.push_back(split + " " + json_text(line["step"]));
    loss[split] = line["loss"];
  }
  CHECK(order == std::vector<std::string>{"train 1", "train 2", "train 3", "train 4", "validation 4",
                                          "train 5", "train 6", "validation 6", "test 6"});
  CHECK(lines[0]["run"] == run_identity(run_config(), record_of(run_config())));
  for (const Json& line : lines) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : line.items())
      if (key != "run") keys.push_back(key);
    CHECK(line.contains("run") == (&line == lines.data()));
    if (line["split"] == "train") {
      CHECK(keys == std::vector<std::string>{"step", "split", "loss", "accuracy", "sequence_accuracy",
                                             "learning_rate", "gradient_norm", "sequences", "labels",
                                             "seconds"});
      CHECK(line["sequences"] == 24);
      CHECK(line["labels"] == 96);
    } else {
      CHECK(keys == std::vector<std::string>{"step", "split", "loss", "accuracy", "sequence_accuracy",
                                             "sequences", "labels", "loss_error", "accuracy_error", "chance",
                                             "no_better_than_chance", "lowest_possible_loss", "seconds"});
    }
  }
  CHECK(loss["train"] == result.train.loss);
  CHECK(loss["test"] == result.test->loss);
}

TEST_CASE("two runs write the same metrics and weights, byte for byte, whatever the threads", "[train]") {
  const TemporaryDirectory directory;
  std::vector<std::string> metrics, weights;
  for (const std::int64_t threads : {1, 1, 2}) {
    Config config = run_config();
    config.train.threads = threads;
    const fs::path run = directory / std::to_string(metrics.size());
    const TrainResult result = train(config, {.directory = run.string()});
    CHECK(result.threads == threads);
    metrics.push_back(timeless_metrics(run));
    weights.push_back(result.weights_hash);
  }
  CHECK(metrics[0].find("seconds") == std::string::npos);
  CHECK(metrics[0].size() > 500);
  CHECK(metrics[0] == metrics[1]);
  CHECK(metrics[0] == metrics[2]);
  CHECK(weights[0] == weights[1]);
  CHECK(weights[0] == weights[2]);
}

TEST_CASE("a run can be opened and evaluated again, to the very numbers", "[train]") {
  for (const Precision precision : {Precision::float32, Precision::float64}) {
    const TemporaryDirectory directory;
    Config config = run_config();
    config.train.precision = precision;
    const TrainResult result = train(config, {.directory = (directory / "run").string()});
    const ModelSource source = open_run(directory / "run");
    CHECK(to_yaml(source.config) == to_yaml(config));
    for (const auto& [split, expected] :
         {std::pair(Split::test, *result.test), std::pair(Split::validation, *result.validation)}) {
      const EvalResult again = evaluate(source, split);
      CHECK(again.loss == expected.loss);
      CHECK(again.accuracy == expected.accuracy);
      CHECK(again.sequence_accuracy == expected.sequence_accuracy);
      CHECK(again.sequences == expected.sequences);
    }
    CHECK(evaluate(open_run(directory / "run", {"data.test=7"}), Split::test).sequences == 7);
    const bool wide = SafetensorsFile(source.weights).entry("output.3.bias").dtype == DType::f64;
    CHECK(wide == (precision == Precision::float64));
  }
}

TEST_CASE("the two precisions differ in rounding only", "[train]") {
  Config config = run_config();
  config.train.precision = Precision::float32;
  const TrainResult single = train(config);
  config.train.precision = Precision::float64;
  const TrainResult twice = train(config);
  CHECK(single.train.loss != twice.train.loss);
  CHECK_THAT(single.train.loss, WithinRel(twice.train.loss, 1e-4));
  CHECK_THAT(single.test->loss, WithinRel(twice.test->loss, 1e-4));
  CHECK(single.directory.empty());
}

TEST_CASE("splits that are empty are left out", "[train]") {
  Config config = run_config();
  config.data.validation = config.data.test = 0;
  const TrainResult result = train(config);
  CHECK_FALSE(result.validation.has_value());
  CHECK_FALSE(result.test.has_value());
  CHECK_FALSE(to_json(result).contains("test"));
}

TEST_CASE("an empty directory is used, a file is not", "[train]") {
  const TemporaryDirectory directory;
  const std::string run = directory.path().string();
  CHECK_NOTHROW(train(run_config(), {.directory = run}));
  CHECK_THROWS_AS(train(run_config(), {.directory = run + "/summary.json"}), CheckpointError);
}

TEST_CASE("a run without a checkpoint cannot be opened", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  CHECK_THROWS_AS(open_run(run), CheckpointError);
  CHECK_THROWS_WITH(open_run(run), ContainsSubstring(run.string() + ": no such run directory"));
  Config config = run_config();
  config.train.optimizer = {.name = OptimizerKind::sgd, .lr = 1e300};
  CHECK_THROWS_AS(train(config, {.directory = run.string()}), NumericError);
  CHECK(fs::exists(run / "config.yaml"));
  CHECK_FALSE(fs::exists(run / "summary.json"));
  CHECK_THROWS_WITH(open_run(run),
                    ContainsSubstring("the run has no checkpoint yet; train it: thimble train "));
}

TEST_CASE("a run with another model in its config is refused", "[train]") {
  const TemporaryDirectory directory;
  train(run_config(), {.directory = (directory / "run").string()});
  const ModelSource other = open_run(directory / "run", {"model.d_ff=25"});
  CHECK_THROWS_AS(evaluate(other, Split::test), CheckpointError);
  CHECK_THROWS_WITH(evaluate(other, Split::test),
                    ContainsSubstring("linear1.weight has shape (24, 16), the model requires (25, 16)"));
}

TEST_CASE("what cannot be written any more is a CheckpointError", "[train]") {
  struct Vandal : TrainObserver {
    fs::path victim;
    void on_step(const StepReport&) override { fs::remove_all(victim); }
  } vandal;
  const TemporaryDirectory directory;
  vandal.victim = directory / "run" / "checkpoints";
  CHECK_THROWS_AS(train(run_config(), {.directory = (directory / "run").string(), .observer = &vandal}),
                  CheckpointError);
}

TEST_CASE("a run directory is named after config and values, and not used twice", "[train]") {
  const TemporaryDirectory directory;
  const fs::path here = fs::current_path();
  fs::current_path(directory.path());
  const fs::path first = unused_run_directory("some/where/reverse.yaml", run_config());
  CHECK(std::regex_match(first.string(), std::regex("runs/reverse-[0-9a-f]{8}")));
  CHECK(unused_run_directory("reverse.yaml", run_config()) == first);
  fs::create_directories(first);
  CHECK(unused_run_directory("reverse.yaml", run_config()) == first.string() + "-2");
  Config other = run_config();
  other.train.seed = 1;
  CHECK(unused_run_directory("reverse.yaml", other) != first.string() + "-2");
  CHECK_FALSE(fs::exists(first.string() + "-2"));  // only named
  // A config without an interval has the name that it had when none was 0.
  Config never = run_config(), by_itself = never;
  never.train.evaluate_every = 0;
  by_itself.train.evaluate_every = kAuto;
  CHECK(run_directory("reverse.yaml", by_itself) == run_directory("reverse.yaml", never));
  // A project that moves keeps its names; the same path from elsewhere is no other name for other data.
  const auto values = [&](const fs::path& project, const fs::path& file) {
    fs::create_directories(project);
    fs::current_path(project);
    Config config = run_config();
    config.task = {.name = "file"};
    config.task.file = file.string();
    return named_values(config);
  };
  const fs::path project = directory / "project", moved = directory / "moved", data = directory / "d.tsv";
  CHECK(values(project, project / "data" / "d.tsv") == values(moved, moved / "data" / "d.tsv"));
  CHECK_THAT(values(project, data), ContainsSubstring("  file: " + data.string() + "\n"));
  fs::current_path(here);
}
