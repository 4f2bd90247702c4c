// A run is compared with its checkpoints before it is used.
#include "thimble/train/run_files.h"
#include "thimble/compare/compare.h"
#include "thimble/core/error.h"
#include "thimble/inspect/timeline/checkpoint_series.h"
#include "train/changed_run.h"
#include "train/training.h"

using namespace thimble;

TEST_CASE("a changed config.yaml is refused with key and values, and nothing changes", "[train]") {
  const TemporaryDirectory directory;
  const fs::path finished = directory / "finished", stopped = directory / "stopped";
  train(short_run_config(12), {.directory = finished.string()});
  train(short_run_config(12), {.directory = stopped.string(), .stop_after = 7});
  const std::vector<std::vector<std::string>> changes = {
      {"seed: 42", "seed: 43"},     {"lr: 0.003", "lr: 0.004"},     {"batch: 24", "batch: 25"},
      {"shards: 4", "shards: 3"},   {"d_model: 16", "d_model: 18"}, {"length: 4", "length: 5"},
      {"train: 600", "train: 601"}, {"beta1: 0.9", "beta1: 0.8"}};
  for (const fs::path& run : {finished, stopped})
    for (const auto& change : changes) {
      CAPTURE(run, change);
      const std::string intact = read_file(run / "config.yaml");
      replace_in_file(run / "config.yaml", change[0], change[1]);
      const auto before = tree(run);
      const std::string now = change[1].substr(change[1].find(' ') + 1);
      const auto check_refused = [&](const auto& open) {
        CHECK_THROWS_AS(open(), ConfigError);
        CHECK_THROWS_WITH(open(), StartsWith(run.string() + ": is not what ") &&
                                      ContainsSubstring(" in the checkpoint, " + now + " in config.yaml"));
      };
      check_refused([&] { resume_run(run); });
      check_refused([&] { open_run(run); });
      check_refused([&] { open_run(run, {"train.seed=7"}, "best"); });
      check_refused([&] { compare({run.string(), run.string()}); });
      CHECK(tree(run) == before);
      write_file(run / "config.yaml", intact);
    }
  CHECK_NOTHROW(open_run(finished, {"train.seed=7"}));
  CHECK_NOTHROW(compare({finished.string(), finished.string()}));
}

TEST_CASE("a changed data.json is refused with both values, and nothing changes", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", file = run / "data.json";
  train(short_run_config(12), {.directory = run.string()});
  const std::string intact = read_file(file);
  const auto is_refused = [&](const std::string& from, const std::string& to, const std::string& message) {
    CAPTURE(to);
    replace_in_file(file, from, to);
    const auto before = tree(run);
    CHECK_THROWS_WITH(open_run(run), ContainsSubstring(message));
    CHECK_THROWS_WITH(compare({run.string(), run.string()}), ContainsSubstring(message));
    CHECK(tree(run) == before);
    write_file(file, intact);
  };
  is_refused("\"length\": 4", "\"length\": 5", "length: 4 in the checkpoint, 5 in data.json");
  is_refused("\"1\"", "\"7\"", "vocabulary: 6 tokens, hash ");
  is_refused("{", "[", "data.json: invalid record of the training data");
  fs::remove(file);
  CHECK_THROWS_WITH(open_run(run), StartsWith(file.string() + ": missing; restore the file"));
}

TEST_CASE("changes on resuming are recorded, and those recorded are accepted", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", changes = run / "changes.json";
  const Config first = short_run_config(8);
  train(first, {.directory = run.string()});
  CHECK_FALSE(fs::exists(changes));
  Config longer = short_run_config(12);
  longer.train.checkpoint_every = 3;
  train(longer, {.directory = run.string(), .resume = true});
  CHECK(read_json(changes) == Json::parse(R"([{"step": 8, "key": "train.steps", "from": 8, "to": 12},
                        {"step": 8, "key": "train.checkpoint_every", "from": 5, "to": 3}])"));
  // Another learning rate, as the lab sets it; the best checkpoint is older.
  Config other = longer;
  other.train.optimizer.lr = 0.25;
  write_file(run / "config.yaml", to_yaml(other));
  CHECK_THROWS_AS(open_run(run), ConfigError);
  record_changes(run, 12, longer, other);
  CHECK_NOTHROW(open_run(run));
  CHECK_NOTHROW(open_run(run, {}, "best"));
  replace_in_file(changes, "0.25", "0.5");
  CHECK_THROWS_WITH(open_run(run),
                    ContainsSubstring("train.optimizer.lr: 0.003 in the checkpoint, 0.25 in config.yaml"));
  // A checkpoint that was saved between two changes at its step.
  fs::remove(changes);
  Config before = longer;
  before.train.optimizer.lr = 0.5;
  record_changes(run, 12, before, other);
  CHECK_NOTHROW(open_run(run));
  // Later changes must begin where the one before ended.
  record_changes(run, 14, before, other);
  CHECK_THROWS_AS(open_run(run), ConfigError);
  // A change before the checkpoint does not explain a difference from it.
  fs::remove(changes);
  record_changes(run, 3, longer, other);
  CHECK_THROWS_AS(open_run(run), ConfigError);
}

TEST_CASE("a changes.json that is no list of changes is refused", "[train]") {
  const TemporaryDirectory directory;
  for (const char* text :
       {"{}", "[3]", "[{}]", R"([{"step":"1"}])", R"([{"step":1}])", R"([{"step":1,"key":2}])",
        R"([{"step":1,"key":"k"}])", R"([{"step":1,"key":"k","from":1}])"}) {
    CAPTURE(text);
    write_file(directory / "changes.json", text);
    CHECK_THROWS_WITH(record_changes(directory.path(), 1, short_run_config(8), short_run_config(9)),
                      EndsWith("changes.json: not a list of changes; restore the file"));
    CHECK(read_file(directory / "changes.json") == text);
  }
}

TEST_CASE("changes at one step become one, and none if they cancel", "[train]") {
  const TemporaryDirectory directory;
  const Config one = short_run_config(8), two = short_run_config(9), three = short_run_config(10);
  record_changes(directory.path(), 5, one, two);
  record_changes(directory.path(), 5, two, three);
  CHECK(read_json(directory / "changes.json") ==
        Json::parse(R"([{"step": 5, "key": "train.steps", "from": 8, "to": 10}])"));
  record_changes(directory.path(), 5, three, one);
  CHECK(read_json(directory / "changes.json") == Json::array());
}

TEST_CASE("an intact checkpoint is never set aside, and what is set aside replaces nothing", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", aside = run / "checkpoints" / "final.safetensors.damaged";
  train(short_run_config(12), {.directory = run.string()});
  const fs::path final_path = run / "checkpoints" / "final.safetensors";
  SECTION("of another format") {
    const SafetensorsFile file(final_path);
    auto metadata = file.metadata();
    metadata["format"] = "thimble 9";
    write_safetensors(final_path, {}, metadata);
    const auto before = tree(run);
    CHECK_THROWS_WITH(resume_run(run),
                      ContainsSubstring("not a checkpoint of format thimble 2; resume with"));
    CHECK(tree(run) == before);
  }
  SECTION("of another run") {
    Config other = short_run_config(12);
    other.train.seed = 1;
    train(other, {.directory = (directory / "other").string()});
    fs::copy_file(directory / "other" / "checkpoints" / "final.safetensors", final_path,
                  fs::copy_options::overwrite_existing);
    const auto before = tree(run);
    CHECK_THROWS_WITH(resume_run(run),
                      ContainsSubstring("train.seed: 1 in the checkpoint, 42 in config.yaml"));
    CHECK(tree(run) == before);
  }
  SECTION("damaged twice") {
    for (const char* name : {"first", "second"}) {
      write_file(final_path, name);
      resume_run(run);
    }
    CHECK(read_file(aside) == "first");
    CHECK(read_file(aside.string() + "-2") == "second");
  }
}

TEST_CASE("a checkpoint under another name, or of more steps than the run, is refused", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", checkpoints = run / "checkpoints";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 11});
  const auto refused = [&](const fs::path& from, const char* name, const std::string& message) {
    const fs::path saved = directory / "saved";
    fs::remove_all(saved);
    fs::copy(run, saved, fs::copy_options::recursive);
    fs::copy_file(from, checkpoints / name, fs::copy_options::overwrite_existing);
    const auto before = tree(run);
    const std::string checkpoint = name == std::string("best.safetensors") ? "best" : "";
    CHECK_THROWS_WITH(open_run(run, {}, checkpoint), ContainsSubstring(message));
    if (checkpoint.empty()) CHECK_THROWS_WITH(resume_run(run), ContainsSubstring(message));
    CHECK(tree(run) == before);
    fs::remove_all(run);
    fs::rename(saved, run);
  };
  refused(checkpoints / "step-10.safetensors", "step-12.safetensors",
          "holds step 10; restore the file, or rename it to step-10.safetensors");
  refused(checkpoints / "step-11.safetensors", "best.safetensors", "holds step 11, but the best is 8");
  refused(checkpoints / "step-10.safetensors", "final.safetensors",
          "holds step 10, at which training to step 12 has not ended");
  const fs::path longer = directory / "longer";
  train(short_run_config(20), {.directory = longer.string()});
  refused(longer / "checkpoints" / "final.safetensors", "final.safetensors",
          "holds step 20, but the run has 12");
}

TEST_CASE("a run that was killed after its best checkpoint goes on from there, and has the same files",
          "[train]") {
  const TemporaryDirectory directory;
  Config config = short_run_config(12);
  config.train.checkpoint_every = 4;
  config.train.checkpoint_series = true;
  for (const std::int64_t step : {4, 12}) {
    const fs::path run = directory / std::to_string(step), checkpoints = run / "checkpoints";
    Config part = config;
    part.train.steps = step;
    const TrainResult expected = train(part, {.directory = run.string()});
    REQUIRE(expected.best_step == step);
    const auto before = tree(run);
    for (const auto& [name, content] : tree(checkpoints))
      if (name != "best.safetensors" && name != "step-1.safetensors" && name != "step-2.safetensors")
        fs::remove(checkpoints / name);
    fs::remove(run / "summary.json");
    CHECK(resume_run(run).weights_hash == expected.weights_hash);
    for (const auto& [name, content] : before) CHECK(fs::exists(run / name));
  }
}

TEST_CASE("a run whose last checkpoint is missing is refused, unless another is named", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  train(short_run_config(12), {.directory = run.string()});
  fs::remove(run / "checkpoints" / "final.safetensors");
  const std::string message = "final.safetensors: missing, though training has ended; restore the file";
  CHECK_THROWS_WITH(open_run(run), ContainsSubstring(message));
  CHECK_THROWS_WITH(compare({run.string(), run.string()}), ContainsSubstring(message));
  CHECK_NOTHROW(open_run(run, {}, "best"));
  resume_run(run);
  CHECK_NOTHROW(open_run(run));
}

TEST_CASE("what a run leaves before its first checkpoint can be resumed", "[train]") {
  const TemporaryDirectory directory;
  const fs::path whole = directory / "whole", run = directory / "run";
  const TrainResult expected = train(short_run_config(12), {.directory = whole.string()});
  fs::create_directories(run / "checkpoints");
  fs::copy_file(whole / "data.json", run / "data.json");
  const TrainResult result = train(short_run_config(12), {.directory = run.string(), .resume = true});
  CHECK(result.weights_hash == expected.weights_hash);
}

TEST_CASE("a run whose only checkpoint is the best is read from there", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", checkpoints = run / "checkpoints";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 7});
  CHECK(open_run(run).weights.filename() == "step-7.safetensors");
  for (const auto& [name, content] : tree(checkpoints))
    if (name != "best.safetensors") fs::remove(checkpoints / name);
  CHECK(open_run(run).weights.filename() == "best.safetensors");
  CHECK(open_run(run, {}, "best").weights.filename() == "best.safetensors");
}

TEST_CASE("a series of checkpoints is of one run", "[train]") {
  const TemporaryDirectory directory;
  Config config = short_run_config(12), other = config;
  config.train.checkpoint_series = other.train.checkpoint_series = true;
  other.train.seed = 1;
  train(config, {.directory = (directory / "run").string()});
  train(other, {.directory = (directory / "other").string()});
  CHECK(checkpoints_by_step(directory / "run").size() == 5);  // 1, 2, 5, 10, 12
  fs::copy_file(directory / "other" / "checkpoints" / "step-5.safetensors",
                directory / "run" / "checkpoints" / "step-5.safetensors",
                fs::copy_options::overwrite_existing);
  CHECK_THROWS_WITH(checkpoints_by_step(directory / "run"),
                    ContainsSubstring("train.seed: 1 in the checkpoint, 42 in config.yaml"));
}

TEST_CASE("a checkpoint asked for is written once, and not after the end", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", checkpoints = run / "checkpoints";
  TrainingRun training(short_run_config(2), {.directory = run.string()});
  CHECK_FALSE(training.start().has_value());
  CHECK_FALSE(training.record(training.trainer().step()).has_value());
  training.checkpoint();
  const auto written = tree(checkpoints);
  CHECK(written.contains("step-1.safetensors"));
  training.checkpoint();
  CHECK(tree(checkpoints) == written);  // which states seconds
  CHECK(training.record(training.trainer().step()) == Stopped::at_last_step);
  const auto ended = tree(checkpoints);
  training.checkpoint();
  CHECK(tree(checkpoints) == ended);
}
