// What a run writes, resumed or killed anywhere, and what it leaves alone.
#include "train/runs/run_writer.h"
#include "program/compare/compare.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/timeline.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/runs/changed_run.h"
#include "train/runs/training.h"

using namespace thimble;

TEST_CASE("changes on resuming are lines of the metrics, and older checkpoints stay readable", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  train(short_run_config(8), {.directory = run.string()});
  Config longer = short_run_config(12);
  longer.train.checkpoint_every = 3;
  longer.train.threads = 2;
  train(longer, {.directory = run.string(), .resume = true});
  Json changes = Json::array();
  for (Json& line : metrics_of(run)) {
    if (line["split"] != "change") continue;
    line.erase("seconds");
    changes.push_back(line);
  }
  CHECK(changes == Json::parse(R"([{"step": 8, "split": "change", "key": "train.steps", "from": 8, "to": 12},
            {"step": 8, "split": "change", "key": "train.checkpoint_every", "from": 5, "to": 3}])"));
  // Another learning rate, as the lab sets it: only if it is allowed, and the newest checkpoint has it at once.
  Config other = short_run_config(16);
  other.train.optimizer.lr = 0.25;
  CHECK_THROWS_AS(train(other, {.directory = run.string(), .resume = true}), ConfigError);
  Config wider = other;
  wider.model.d_ff = 7;
  CHECK_THROWS_WITH(train(wider, {.directory = run.string(), .resume = true, .new_rate = true}),
                    ContainsSubstring("\n  model.d_ff: ") && !ContainsSubstring("train.optimizer.lr"));
  train(other, {.directory = run.string(), .resume = true, .stop_after = 13, .new_rate = true});
  CHECK(open_run(run).remarks == std::vector{run.string() + ": training has not ended; this is step 13"});
  CHECK(open_run(run).state.step == 13);
  train(other, {.directory = run.string(), .resume = true});  // with the same value, as any run
  CHECK(open_run(run).state.run == run_identity(longer, record_of(longer)));
  CHECK_NOTHROW(open_run(run, {}, "best"));
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
                      ContainsSubstring("not a checkpoint of format thimble 4; open it with"));
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
  SECTION("that cannot be read") {
    const fs::path best = run / "checkpoints" / "best.safetensors";
    fs::rename(best, directory / "best");
    fs::create_directory(best);
    const auto before = tree(run);
    CHECK_THROWS_WITH(resume_run(run), StartsWith(best.string() + ": cannot be read: "));
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

TEST_CASE("a file that the run did not write stays, and is named", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", other = directory / "other";
  Config config = short_run_config(12);
  train(config, {.directory = run.string(), .stop_after = 7});
  config.train.seed = 1;
  train(config, {.directory = other.string()});
  const fs::path foreign = other / "checkpoints" / "final.safetensors";
  const auto refused = [&](const fs::path& from, const fs::path& to) {
    CAPTURE(to);
    const fs::path aside = directory / "aside";
    if (fs::exists(run / to)) fs::rename(run / to, aside);
    fs::copy_file(from, run / to);
    const auto before = tree(run);
    CHECK_THROWS_WITH(
        resume_run(run),
        Equals((run / to).string() +
               ": is not of this run, which would overwrite or delete it; move it elsewhere, then resume"));
    CHECK(tree(run) == before);
    fs::rename(run / to, directory / "elsewhere");
    CHECK_NOTHROW(RunWriter({.directory = run, .resume = true}, short_run_config(12)));
    if (fs::exists(aside)) fs::rename(aside, run / to);
  };
  refused(foreign, "checkpoints/best.safetensors");
  refused(foreign, "checkpoints/step-3.safetensors");
  refused(other / "summary.json", "summary.json");
  write_file(directory / "mine", "{}");
  refused(directory / "mine", "summary.json");
  write_safetensors(directory / "weights", {}, {{"config", "mine"}});
  refused(directory / "weights", "checkpoints/best.safetensors");
  // What is damaged is set aside, also where the header names another run by the damage.
  const fs::path best = run / "checkpoints" / "best.safetensors";
  const std::string intact_best = read_file(best), identity = open_run(run).state.run;
  std::string text = intact_best;
  text[text.find(identity)] ^= 1;
  write_file(best, text);
  fs::copy(run, directory / "headers", fs::copy_options::recursive);
  resume_run(directory / "headers");
  CHECK(read_file(directory / "headers" / "checkpoints" / "best.safetensors.damaged") == text);
  write_file(run / "checkpoints" / "best.safetensors", "x");
  write_file(run / "summary.json", "{\n  \"steps\": 12,");
  resume_run(run);
  CHECK(read_file(run / "checkpoints" / "best.safetensors.damaged") == "x");
  CHECK(parse_json(read_file(run / "summary.json")).at("steps") == 12);
  CHECK_NOTHROW(open_run(run, {}, "best"));
}

TEST_CASE("an older best checkpoint is said by readers, and keeps a run from resuming", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", best = run / "checkpoints" / "best.safetensors";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 4});
  fs::copy(best, directory / "older");
  train(short_run_config(12), {.directory = run.string(), .resume = true, .stop_after = 10});
  REQUIRE(open_run(run).state.best_step == 8);
  CHECK(open_run(run, {}, "best").remarks.empty());
  fs::copy(best, directory / "right");
  fs::copy_file(directory / "older", best, fs::copy_options::overwrite_existing);
  const std::string why =
      best.string() + ": holds step 4, but the best of the run is step 8; restore the file";
  CHECK(open_run(run, {}, "best").remarks == std::vector{why});
  CHECK(open_run(run).remarks == std::vector{run.string() + ": training has not ended; this is step 10"});
  fs::copy(run, directory / "restored", fs::copy_options::recursive);
  fs::copy_file(directory / "right", directory / "restored" / "checkpoints" / "best.safetensors",
                fs::copy_options::overwrite_existing);
  CHECK_THROWS_WITH(resume_run(run), why + ", or delete it, then resume");
  CHECK(read_file(best) == read_file(directory / "older"));
  fs::remove(best);
  CHECK(resume_run(run).weights_hash == resume_run(directory / "restored").weights_hash);
}

TEST_CASE("a checkpoint opens under another name, by its path", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", copy = directory / "mine.safetensors";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 7});
  fs::copy(run / "checkpoints" / "step-7.safetensors", copy);
  CHECK(open_run(run, {}, copy.string()).state.step == 7);
  const std::string missing =
      (run / "checkpoints" / "step-9.safetensors").string() + ": no such checkpoint; the run has ";
  CHECK_THROWS_WITH(open_run(run, {}, "9"), missing + "7, 5, best");
  fs::remove_all(run / "checkpoints");
  CHECK_THROWS_WITH(open_run(run, {}, "9"), missing + "none");
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

TEST_CASE("a resumed run that ends at once is whole", "[train]") {
  const TemporaryDirectory directory;
  const auto ends = [&](const char* name, const auto& change) {
    CAPTURE(name);
    const fs::path run = directory / name;
    Config config = short_run_config(12);
    if (name == std::string("patience")) config.train.optimizer.lr = 1e-30;
    train(config, {.directory = run.string(), .stop_after = 8});
    change(config);
    const TrainResult result = train(config, {.directory = run.string(), .resume = true});
    CHECK(result.steps == 8);
    const bool is_best = config.train.patience > 0;  // before the last step
    CHECK(open_run(run).weights.filename() == (is_best ? "best.safetensors" : "final.safetensors"));
    CHECK(open_run(run).remarks.empty());
    CHECK_NOTHROW(compare({run.string(), run.string()}));
    const auto before = tree(run);
    train(config, {.directory = run.string(), .resume = true});
    CHECK(tree(run) == before);
  };
  ends("steps", [](Config& config) { config.train.steps = 8; });
  ends("target", [](Config& config) { config.train.target.loss = 100; });
  ends("patience", [](Config& config) { config.train.patience = 1; });
}

TEST_CASE("a resume that does nothing leaves a run that is whole", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  train(short_run_config(8), {.directory = run.string()});
  const std::string metrics = read_file(run / "metrics.jsonl");
  train(short_run_config(12), {.directory = run.string(), .resume = true, .stop_after = 8});
  CHECK(read_file(run / "metrics.jsonl") == metrics);
  CHECK(open_run(run).weights.filename() == "final.safetensors");
  CHECK(read_timeline(run, open_run(run).state).remarks.empty());
  CHECK(resume_run(run).steps == 12);
}

TEST_CASE("a run that is killed after its best checkpoint goes on with other keys", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", checkpoints = run / "checkpoints";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 8});
  fs::remove(checkpoints / "step-8.safetensors");  // best is 8, the last step 5
  Config other = short_run_config(12);
  other.train.evaluate_every = 3;
  other.train.patience = 40;
  train(other, {.directory = run.string(), .resume = true});
  CHECK_NOTHROW(open_run(run, {}, "best"));
}

TEST_CASE("what a run leaves before its first checkpoint can be resumed", "[train]") {
  const TemporaryDirectory directory;
  const fs::path whole = directory / "whole", run = directory / "run";
  const TrainResult expected = train(short_run_config(12), {.directory = whole.string()});
  fs::create_directories(run / "checkpoints");
  fs::copy_file(whole / "data.json", run / "data.json");
  const TrainResult result = train(short_run_config(12), {.directory = run.string(), .resume = true});
  CHECK(result.weights_hash == expected.weights_hash);
  // A data.json that is no run's is of somebody else.
  const fs::path other = directory / "other";
  fs::create_directory(other);
  write_file(other / "data.json", "{}");
  const auto before = tree(other);
  CHECK_THROWS_WITH(train(short_run_config(12), {.directory = other.string(), .resume = true}),
                    other.string() + ": exists and is not an empty directory; choose another with --out");
  CHECK(tree(other) == before);
}

TEST_CASE("a copy by hard links keeps its bytes while the run goes on, and the other way round", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", snapshot = directory / "snapshot";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 7});
  write_file(run / ".lock", "process 1 on nowhere");  // of a process that was killed
  fs::create_directories(snapshot / "checkpoints");
  for (const auto& [name, content] : tree(run))
    if (content != "directory") fs::create_hard_link(run / name, snapshot / name);
  const auto copied = tree(snapshot);
  const TrainResult result = resume_run(run);
  CHECK(tree(snapshot) == copied);
  const auto ended = tree(run);
  CHECK(resume_run(snapshot).weights_hash == result.weights_hash);
  CHECK(tree(run) == ended);
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

TEST_CASE("the result of a run with patience is its best checkpoint, and the trainer stays at the last step",
          "[train]") {
  const TemporaryDirectory directory;
  Config config = short_run_config(12);
  config.train.optimizer.lr = 1;  // which makes the model worse
  config.train.patience = 2;
  const TrainOptions options{.directory = (directory / "run").string()};
  TrainingRun run(config, options);
  const TrainResult result = run.run();
  REQUIRE(result.final);
  CHECK(result.best_step < result.steps);
  CHECK(result.weights_hash == open_run(options.directory).file->metadata().at("weights_hash"));
  CHECK(result.validation->loss == result.best_loss);
  CHECK(result.final->validation->loss > result.best_loss);
  CHECK(run.trainer().model().parameters().hash() == result.final->weights_hash);
}
