// A run is compared with its checkpoints before it is used.
#include "thimble/train/run_files.h"

#include <cstdio>
#include <sstream>

#include "catch.h"
#include "core/temporary_directory.h"
#include "thimble/compare/compare.h"
#include "thimble/core/error.h"
#include "thimble/core/text.h"
#include "thimble/inspect/timeline/checkpoint_series.h"
#include "thimble/inspect/timeline/timeline.h"
#include "thimble/train/run.h"
#include "train/run_files.h"
#include "train/small_config.h"
#include "train/training.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

Config config_of(std::int64_t steps) {
  Config config = small_config();
  config.train.steps = steps;
  config.train.evaluate_every = 4;
  config.train.checkpoint_every = 5;
  config.train.schedule.name = ScheduleKind::constant;
  return config;
}

void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = read_file(file);
  const std::size_t at = text.find(from);
  REQUIRE(at != text.npos);
  write_file(file, text.replace(at, from.size(), to));
}

// Writes the lines with another loss in the last one, and the checks that belong to them.
void write_rechecked(const fs::path& metrics, const std::string& run) {
  std::string text;
  MetricsCheck check(run);
  std::istringstream lines(read_file(metrics));
  for (std::string line; std::getline(lines, line);) {
    Json values = parse_json(line);
    const auto seconds = values.at("seconds").get<double>();
    values.erase("check");
    values.erase("seconds");
    if (lines.peek() == EOF) {
      std::string changed = json_text(values);
      changed[changed.find("loss") + 8] ^= 1;
      values = parse_json(changed);
    }
    text += check.line(values, seconds);
  }
  write_file(metrics, text);
}

// Rewrites the metadata of a checkpoint; its tensors are lost.
void change_metadata(const fs::path& checkpoint, const char* key, const char* value = nullptr) {
  auto metadata = SafetensorsFile(checkpoint).metadata();
  metadata.erase(key);
  if (value != nullptr) metadata[key] = value;
  write_safetensors(checkpoint, {}, metadata);
}

// Makes the run one of version 0.2.0, whose files state no identity and no checks.
void forget_checks(const fs::path& run) {
  for (const auto& [name, content] : tree(run / "checkpoints")) {
    const fs::path path = run / "checkpoints" / name;
    Json state = parse_json(SafetensorsFile(path).metadata().at("state"));
    state.erase("run");
    change_metadata(path, "state", json_text(state).c_str());
  }
  std::string metrics = read_file(run / "metrics.jsonl");
  for (std::size_t at; (at = metrics.find(",\"check\"")) != metrics.npos;) metrics.erase(at, 27);
  write_file(run / "metrics.jsonl", metrics);
}

TrainResult resume(const fs::path& run) {
  return train(open_config((run / "config.yaml").string()), {.directory = run.string(), .resume = true});
}

}  // namespace

TEST_CASE("a changed config.yaml is refused with key and values, and nothing changes", "[train]") {
  const TemporaryDirectory directory;
  const fs::path finished = directory / "finished", stopped = directory / "stopped";
  train(config_of(12), {.directory = finished.string()});
  train(config_of(12), {.directory = stopped.string(), .stop_after = 7});
  const std::vector<std::vector<std::string>> changes = {
      {"seed: 42", "seed: 43"},     {"lr: 0.003", "lr: 0.004"},     {"batch: 24", "batch: 25"},
      {"shards: 4", "shards: 3"},   {"d_model: 16", "d_model: 18"}, {"length: 4", "length: 5"},
      {"train: 600", "train: 601"}, {"beta1: 0.9", "beta1: 0.8"}};
  for (const fs::path& run : {finished, stopped})
    for (const auto& change : changes) {
      CAPTURE(run, change);
      const std::string intact = read_file(run / "config.yaml");
      replace_in(run / "config.yaml", change[0], change[1]);
      const auto before = tree(run);
      const std::string now = change[1].substr(change[1].find(' ') + 1);
      const auto check_refused = [&](const auto& open) {
        CHECK_THROWS_AS(open(), ConfigError);
        CHECK_THROWS_WITH(open(), StartsWith(run.string() + ": is not what ") &&
                                      ContainsSubstring(" in the checkpoint, " + now + " in config.yaml"));
      };
      check_refused([&] { resume(run); });
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
  train(config_of(12), {.directory = run.string()});
  const std::string intact = read_file(file);
  const auto is_refused = [&](const std::string& from, const std::string& to, const std::string& message) {
    CAPTURE(to);
    replace_in(file, from, to);
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
  const Config first = config_of(8);
  train(first, {.directory = run.string()});
  CHECK_FALSE(fs::exists(changes));
  Config longer = config_of(12);
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
  replace_in(changes, "0.25", "0.5");
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
    CHECK_THROWS_WITH(record_changes(directory.path(), 1, config_of(8), config_of(9)),
                      EndsWith("changes.json: not a list of changes; restore the file"));
    CHECK(read_file(directory / "changes.json") == text);
  }
}

TEST_CASE("changes at one step become one, and none if they cancel", "[train]") {
  const TemporaryDirectory directory;
  const Config one = config_of(8), two = config_of(9), three = config_of(10);
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
  train(config_of(12), {.directory = run.string()});
  const fs::path final_path = run / "checkpoints" / "final.safetensors";
  SECTION("of another format") {
    const SafetensorsFile file(final_path);
    auto metadata = file.metadata();
    metadata["format"] = "thimble 9";
    write_safetensors(final_path, {}, metadata);
    const auto before = tree(run);
    CHECK_THROWS_WITH(resume(run), ContainsSubstring("not a checkpoint of format thimble 2; resume with"));
    CHECK(tree(run) == before);
  }
  SECTION("of another run") {
    Config other = config_of(12);
    other.train.seed = 1;
    train(other, {.directory = (directory / "other").string()});
    fs::copy_file(directory / "other" / "checkpoints" / "final.safetensors", final_path,
                  fs::copy_options::overwrite_existing);
    const auto before = tree(run);
    CHECK_THROWS_WITH(resume(run), ContainsSubstring("train.seed: 1 in the checkpoint, 42 in config.yaml"));
    CHECK(tree(run) == before);
  }
  SECTION("damaged twice") {
    for (const char* name : {"first", "second"}) {
      write_file(final_path, name);
      resume(run);
    }
    CHECK(read_file(aside) == "first");
    CHECK(read_file(aside.string() + "-2") == "second");
  }
}

TEST_CASE("a checkpoint under another name, or of more steps than the run, is refused", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", checkpoints = run / "checkpoints";
  train(config_of(12), {.directory = run.string(), .stop_after = 11});
  const auto refused = [&](const fs::path& from, const char* name, const std::string& message) {
    const fs::path saved = directory / "saved";
    fs::remove_all(saved);
    fs::copy(run, saved, fs::copy_options::recursive);
    fs::copy_file(from, checkpoints / name, fs::copy_options::overwrite_existing);
    const auto before = tree(run);
    const std::string checkpoint = name == std::string("best.safetensors") ? "best" : "";
    CHECK_THROWS_WITH(open_run(run, {}, checkpoint), ContainsSubstring(message));
    if (checkpoint.empty()) CHECK_THROWS_WITH(resume(run), ContainsSubstring(message));
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
  train(config_of(20), {.directory = longer.string()});
  refused(longer / "checkpoints" / "final.safetensors", "final.safetensors",
          "holds step 20, but the run has 12");
}

TEST_CASE("metrics that were changed, cut, zeroed or are another run's are refused", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(config_of(12), {.directory = run.string()});
  Config other = config_of(12);
  other.train.seed = 1;
  train(other, {.directory = (directory / "other").string()});
  const std::string intact = read_file(metrics);
  CHECK(read_metrics(run) == intact);
  std::vector<std::string> broken = {read_file(directory / "other" / "metrics.jsonl"),
                                     std::string(intact.size(), '\0'),
                                     intact + "{\"step\":13}\n",
                                     intact + "{\"step\":13",
                                     intact.substr(0, intact.size() - 1),
                                     intact.substr(0, intact.rfind('\n', intact.size() - 2) + 1)};
  for (const std::size_t at : {intact.find("loss") + 7, intact.find("check") + 9, intact.rfind("test") + 1}) {
    broken.push_back(intact);
    broken.back()[at] ^= 1;
  }
  for (const std::string& text : broken) {
    CAPTURE(text);
    write_file(metrics, text);
    CHECK_THROWS_AS(read_metrics(run), CheckpointError);
    CHECK_THROWS_WITH(read_timeline(run),
                      StartsWith(metrics.string() + ":") && EndsWith("delete it to go without"));
    CHECK_THROWS_AS(compare({run.string(), run.string()}), CheckpointError);
  }
  fs::remove(metrics);
  CHECK(read_metrics(run).empty());
}

TEST_CASE("metrics of another execution, whose times have other lengths, do not fit a checkpoint",
          "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(config_of(12), {.directory = run.string(), .stop_after = 7});
  const std::string intact = read_file(metrics);
  for (const char* seconds : {"1", "123456.0123456789"}) {
    const std::size_t at = intact.find("\"seconds\":") + 10;
    write_file(metrics, intact.substr(0, at) + seconds + intact.substr(intact.find('}', at)) +
                            intact.substr(intact.rfind('\n', intact.size() - 2) + 1));
    CHECK_THROWS_AS(resume(run), CheckpointError);
    CHECK_THROWS_AS(read_metrics(run), CheckpointError);
  }
  std::string unclosed = intact;
  unclosed[unclosed.find("}\n")] = ' ';
  write_file(metrics, unclosed);
  CHECK_THROWS_AS(read_metrics(run), CheckpointError);
  for (const char* broken : {"\"se\xe3onds\"", "\"seconds\":x", "\r"}) {
    std::string text = intact;
    write_file(metrics, text.insert(text.find("\"seconds\""), broken));
    CHECK_THROWS_AS(read_metrics(run), CheckpointError);
  }
}

TEST_CASE("a run that was killed after its best checkpoint goes on from there, and has the same files",
          "[train]") {
  const TemporaryDirectory directory;
  Config config = config_of(12);
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
    CHECK(resume(run).weights_hash == expected.weights_hash);
    for (const auto& [name, content] : before) CHECK(fs::exists(run / name));
  }
}

TEST_CASE("a run whose last checkpoint is missing is refused, unless another is named", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  train(config_of(12), {.directory = run.string()});
  fs::remove(run / "checkpoints" / "final.safetensors");
  const std::string message = "final.safetensors: missing, though training has ended; restore the file";
  CHECK_THROWS_WITH(open_run(run), ContainsSubstring(message));
  CHECK_THROWS_WITH(compare({run.string(), run.string()}), ContainsSubstring(message));
  CHECK_NOTHROW(open_run(run, {}, "best"));
  resume(run);
  CHECK_NOTHROW(open_run(run));
}

TEST_CASE("the last line of a run that goes on may be incomplete", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(config_of(12), {.directory = run.string(), .stop_after = 7});
  const std::string intact = read_file(metrics);
  write_file(metrics, intact + R"({"step":8,"split":"tr)");
  CHECK_NOTHROW(read_metrics(run));
  write_file(metrics, intact + std::string(20, '\0'));
  CHECK_THROWS_AS(read_metrics(run), CheckpointError);
  write_file(metrics, intact.substr(0, intact.size() - 3));  // lines before the checkpoint are whole
  CHECK_THROWS_AS(read_metrics(run), CheckpointError);
}

TEST_CASE("a summary that was changed, cut, zeroed or is another run's is refused", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", summary = run / "summary.json";
  train(config_of(12), {.directory = run.string()});
  Config other = config_of(12);
  other.train.seed = 1;
  train(other, {.directory = (directory / "other").string()});
  const std::string intact = read_file(summary);
  CHECK(read_summary(run).at("steps") == 12);
  const std::string foreign = read_file(directory / "other" / "summary.json");
  const auto changed = [&](const char* key, char to) {
    std::string text = intact;
    text[text.find(':', text.find(key)) + 3] = to;
    return text;
  };
  Json unchecked = parse_json(intact);
  unchecked.erase("checksum");
  for (const std::string& text :
       {foreign, changed("\"steps\"", '3'), changed("weights_hash", 'x'), changed("\"run\"", 'x'),
        json_text(unchecked), std::string(intact.size(), '\0'), intact.substr(0, intact.size() / 2),
        std::string("{}"), std::string("3"), std::string()}) {
    CAPTURE(text);
    write_file(summary, text);
    CHECK_THROWS_AS(read_summary(run), CheckpointError);
    CHECK_THROWS_WITH(read_summary(run),
                      StartsWith(summary.string() + ": ") && EndsWith("or resume the run to write it again"));
    CHECK_THROWS_AS(compare({run.string(), run.string()}), CheckpointError);
  }
  resume(run);
  CHECK(read_summary(run).at("steps") == 12);
}

TEST_CASE("metrics with checks of their own do not fit what the checkpoint and the summary state",
          "[train]") {
  const TemporaryDirectory directory;
  const fs::path ended = directory / "ended", stopped = directory / "stopped";
  train(config_of(12), {.directory = ended.string()});
  train(config_of(12), {.directory = stopped.string(), .stop_after = 7});
  const auto identity = read_summary(ended).at("run").get<std::string>();
  for (const fs::path& run : {ended, stopped}) {
    write_rechecked(run / "metrics.jsonl", identity);
    CHECK_THROWS_WITH(read_metrics(run), ContainsSubstring("was changed, or belongs to another run"));
  }
  const auto before = tree(stopped);
  CHECK_THROWS_WITH(resume(stopped), ContainsSubstring("was changed, or belongs to another run"));
  CHECK(tree(stopped) == before);
  fs::remove(stopped / "metrics.jsonl");
  CHECK_THROWS_WITH(resume(stopped), ContainsSubstring("has 0 bytes, but"));
}

TEST_CASE("metrics of a run without a checkpoint are compared line by line", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(config_of(12), {.directory = run.string()});
  fs::remove(run / "summary.json");
  fs::remove_all(run / "checkpoints");
  CHECK_THROWS_WITH(open_run(run), EndsWith("not a run: config.yaml or checkpoints is missing"));
  CHECK_NOTHROW(read_metrics(run));
  const std::string intact = read_file(metrics);
  std::string text = intact;
  text[text.rfind("loss") + 8] ^= 1;
  write_file(metrics, text);
  CHECK_THROWS_AS(read_metrics(run), CheckpointError);
  // Of another run: training does not begin over them.
  Config other = config_of(12);
  other.train.seed = 1;
  train(other, {.directory = (directory / "other").string(), .stop_after = 3});
  fs::copy_file(directory / "other" / "metrics.jsonl", metrics, fs::copy_options::overwrite_existing);
  fs::create_directory(run / "checkpoints");
  const auto before = tree(run);
  CHECK_THROWS_WITH(resume(run),
                    EndsWith("belongs to a run with another config or other data; start a new run"));
  CHECK(tree(run) == before);
  write_file(metrics, intact);
  CHECK(resume(run).steps == 12);
}

TEST_CASE("what a run leaves before its first checkpoint can be resumed", "[train]") {
  const TemporaryDirectory directory;
  const fs::path whole = directory / "whole", run = directory / "run";
  const TrainResult expected = train(config_of(12), {.directory = whole.string()});
  fs::create_directories(run / "checkpoints");
  fs::copy_file(whole / "data.json", run / "data.json");
  const TrainResult result = train(config_of(12), {.directory = run.string(), .resume = true});
  CHECK(result.weights_hash == expected.weights_hash);
}

TEST_CASE("a run whose only checkpoint is the best is read from there", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", checkpoints = run / "checkpoints";
  train(config_of(12), {.directory = run.string(), .stop_after = 7});
  CHECK(open_run(run).weights.filename() == "step-7.safetensors");
  for (const auto& [name, content] : tree(checkpoints))
    if (name != "best.safetensors") fs::remove(checkpoints / name);
  CHECK(open_run(run).weights.filename() == "best.safetensors");
  CHECK(open_run(run, {}, "best").weights.filename() == "best.safetensors");
}

TEST_CASE("runs of 0.2.0, which have no checks, are read and go on", "[train]") {
  const TemporaryDirectory directory;
  const fs::path ended = directory / "ended", stopped = directory / "stopped";
  const TrainResult expected = train(config_of(12), {.directory = ended.string()});
  const fs::path final_path = ended / "checkpoints" / "final.safetensors";
  fs::copy(ended, stopped, fs::copy_options::recursive);
  forget_checks(ended);
  write_file(ended / "summary.json", json_text(summary_json(to_json(expected), "", 0, "")));
  CHECK(read_summary(ended) == to_json(expected));
  CHECK_FALSE(has_changed(read_summary(ended)));
  CHECK(read_metrics(ended) == read_file(ended / "metrics.jsonl"));
  change_metadata(final_path, "data");
  fs::remove(ended / "data.json");
  CHECK_NOTHROW(open_run(ended));
  // Without the record of the data, no key of the task may change.
  Config longer = config_of(16);
  CHECK_NOTHROW(RunWriter(ended, longer, true));
  longer.task.length = 5;
  CHECK_THROWS_WITH(RunWriter(ended, longer, true), ContainsSubstring("holds a run with another config"));
  change_metadata(final_path, "state");
  CHECK(read_metrics(ended) == read_file(ended / "metrics.jsonl"));
  CHECK_THROWS_WITH(resume(ended), ContainsSubstring("not a checkpoint of format thimble 2"));
  change_metadata(stopped / "checkpoints" / "final.safetensors", "format");
  CHECK_THROWS_WITH(resume(stopped), ContainsSubstring("not a checkpoint of format thimble 2"));
}

TEST_CASE("a series of checkpoints is of one run", "[train]") {
  const TemporaryDirectory directory;
  Config config = config_of(12), other = config;
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
  TrainingRun training(config_of(2), {.directory = run.string()});
  CHECK_FALSE(training.start().has_value());
  CHECK_FALSE(training.record(training.trainer().step()).has_value());
  training.checkpoint();
  CHECK(tree(checkpoints).contains("step-1.safetensors"));
  CHECK(training.record(training.trainer().step()) == Stopped::at_last_step);
  const auto ended = tree(checkpoints);
  training.checkpoint();
  CHECK(tree(checkpoints) == ended);
}
