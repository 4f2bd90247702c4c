// A run is compared with its checkpoints before it is used.
#include "thimble/train/run_directory.h"
#include "program/compare/compare.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/timeline.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/runs/changed_run.h"
#include "train/runs/training.h"

using namespace thimble;

TEST_CASE("a changed config.yaml is refused with key and values, and nothing changes", "[train]") {
  const TemporaryDirectory directory;
  const fs::path finished = directory / "finished", stopped = directory / "stopped";
  train(short_run_config(12), {.directory = finished.string()});
  train(short_run_config(12), {.directory = stopped.string(), .stop_after = 7});
  const std::vector<std::vector<std::string>> changes = {
      {"seed: 42", "seed: 43"},       {"batch: 24", "batch: 25"}, {"shards: 4", "shards: 3"},
      {"d_model: 16", "d_model: 18"}, {"length: 4", "length: 5"}, {"train: 600", "train: 601"},
      {"beta1: 0.9", "beta1: 0.8"}};
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
  const std::string weights = (run / "checkpoints" / "final.safetensors").string();
  const std::string remedy =
      "; restore the file, or open the weights alone: thimble eval --weights " + weights;
  is_refused("{", "[", remedy);
  is_refused("\"vocabulary\"", "\"words\"", "data.json: invalid record of the training data");
  fs::remove(file);
  CHECK_THROWS_WITH(open_run(run), Equals(file.string() + ": missing" + remedy));
  CHECK(evaluate(open_weights(weights, ""), Split::test).sequences == 60);
}

TEST_CASE("a directory is a run by its format, not by its names", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", project = directory / "project";
  train(short_run_config(12), {.directory = run.string()});
  CHECK(RunDirectory(run).is_run());
  fs::create_directories(project / "checkpoints");
  for (const char* name : {"config.yaml", "summary.json", "metrics.jsonl"}) write_file(project / name, "{}");
  CHECK_FALSE(RunDirectory(project).is_run());
  CHECK_THROWS_WITH(open_run(project), EndsWith("not a run: it has no data.json"));
  CHECK_THROWS_WITH(resume_run(project), ContainsSubstring("exists and is not an empty directory"));
  for (const char* record : {"[1]", R"({"format": 3})", R"({"format": "text 3"})"}) {
    write_file(project / "data.json", record);
    CHECK_THROWS_WITH(open_run(project),
                      EndsWith("not a run: data.json does not say \"format\": \"thimble 4\""));
  }
  // Spacing and order of the keys do not matter.
  Json record = read_json(run / "data.json");
  record.erase("format");
  record["format"] = "thimble 3";
  write_file(run / "data.json", json_text(record));
  CHECK_NOTHROW(open_run(run));
  record["format"] = "thimble 2";
  write_file(run / "data.json", json_text(record));
  CHECK_THROWS_WITH(open_run(run), EndsWith("opens those of thimble 3 and thimble 4: use the other one"));
  record.erase("format");
  write_file(run / "data.json", json_text(record));
  for (const auto& open :
       {std::function<void()>([&] { open_run(run); }), std::function<void()>([&] { resume_run(run); })})
    CHECK_THROWS_WITH(
        open(),
        EndsWith(
            "written by a version of thimble before 0.3, whose runs this one does not open; train it again"));
}

TEST_CASE("what may differ from a checkpoint is no reason to refuse it", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", config = run / "config.yaml";
  train(short_run_config(12), {.directory = run.string()});
  const double loss = evaluate(open_run(run), Split::test).loss;
  const std::string intact = read_file(config);
  const auto accepted = [&](const std::string& text, const std::string& remark) {
    write_file(config, text);
    CAPTURE(text);
    const ModelSource model = open_run(run);
    CHECK(evaluate(model, Split::test).loss == loss);
    std::string remarks;
    for (const std::string& line : model.remarks) remarks += line;
    if (remark.empty())
      CHECK(remarks.empty());
    else
      CHECK_THAT(remarks, ContainsSubstring(remark));
    write_file(config, intact);
  };
  accepted("# mine\n" + intact + "\n\n", "");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = intact;
    return text.replace(text.find(from), from.size(), to);
  };
  accepted(with("threads: 1", "threads: 2"), "");
  accepted(with("steps: 12", "steps: 6"), "train.steps: 12 in the checkpoint, 6 in config.yaml");
  accepted(with("lr: 0.003", "lr: 0.3"), "train.optimizer.lr: 0.003 in the checkpoint, 0.3 in config.yaml");
  // But training would go on with another learning rate.
  write_file(config, with("lr: 0.003", "lr: 0.3"));
  const auto before = tree(run);
  CHECK_THROWS_WITH(resume_run(run), ContainsSubstring("lr: 0.003 in the checkpoint, 0.3 in config.yaml"));
  CHECK(tree(run) == before);
  fs::remove(config);
  const ModelSource model = open_run(run);
  CHECK(evaluate(model, Split::test).loss == loss);
  CHECK_THAT(model.remarks.at(0), EndsWith("config.yaml: missing; the config is that of final.safetensors"));
  const RunDirectory opened = run;
  train(open_data(parse_config(opened.config_text(), "config")), {.directory = opened, .resume = true});
  CHECK(read_file(config) == intact);
}

TEST_CASE("a reader writes nothing, and asks for no file but the checkpoint it reads", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  train(short_run_config(12), {.directory = run.string()});
  const double loss = evaluate(open_run(run, {}, "best"), Split::test).loss;
  for (const auto& [name, content] : tree(run))
    if (content != "directory" && name != "data.json" && !name.ends_with("best.safetensors"))
      write_file(run / name, "x");
  fs::remove(run / "config.yaml");
  for (const auto& [name, content] : tree(run))
    if (name.ends_with("final.safetensors") || name.ends_with("step-10.safetensors")) fs::remove(run / name);
  const auto before = tree(run);
  CHECK(evaluate(open_run(run, {}, "best"), Split::test).loss == loss);
  CHECK(evaluate(open_run(run), Split::test).loss == loss);
  CHECK(tree(run) == before);
}

TEST_CASE("a checkpoint under another name is refused, and opens under the one advised", "[train]") {
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
  refused(checkpoints / "step-11.safetensors", "best.safetensors",
          "holds step 11, but the best is 8; restore the file, or rename it to step-11.safetensors");
  refused(
      checkpoints / "step-10.safetensors", "final.safetensors",
      "holds step 10, at which training to step 12 has not ended; restore the file, or rename it to step-10");
  fs::rename(checkpoints / "step-10.safetensors", checkpoints / "final.safetensors");
  CHECK_THROWS_AS(open_run(run), CheckpointError);
  fs::rename(checkpoints / "final.safetensors", checkpoints / "step-10.safetensors");
  CHECK(open_run(run, {}, "10").state.step == 10);
}

TEST_CASE("a run whose last checkpoint is missing is read from the one before it, which a line says",
          "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  train(short_run_config(12), {.directory = run.string()});
  fs::remove(run / "checkpoints" / "final.safetensors");
  const ModelSource model = open_run(run);
  CHECK(model.state.step == 10);
  CHECK(model.remarks == std::vector<std::string>{(run / "checkpoints" / "final.safetensors").string() +
                                                  ": missing, though training has ended; this is step 10"});
  CHECK(compare({run.string(), run.string()}).remarks.size() == 2);
  resume_run(run);
  CHECK(open_run(run).state.step == 12);
  CHECK(open_run(run).remarks.empty());
}

TEST_CASE("a checkpoint that does not state all that one of a run does is refused, and opens with --weights",
          "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", file = run / "checkpoints" / "final.safetensors";
  train(short_run_config(12), {.directory = run.string()});
  const std::map<std::string, std::string> stated = SafetensorsFile(file).metadata();
  for (const char* key : {"format", "state", "data", "weights_hash"}) {
    CAPTURE(key);
    std::map<std::string, std::string> metadata = stated;
    REQUIRE(metadata.erase(key) == 1);
    write_safetensors(file, {}, metadata);
    CHECK_THROWS_AS(open_run(run), CheckpointError);
    CHECK_THROWS_WITH(
        open_run(run),
        file.string() +
            ": not a checkpoint of format thimble 4; open it with the version that wrote it, or thimble eval --weights " +
            file.string());
    CHECK(open_weights(file, "").config.train.steps == 12);
  }
}

TEST_CASE("a checkpoint that is a link is read, and named once it leads nowhere", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", scratch = directory / "scratch",
                 newest = run / "checkpoints" / "step-7.safetensors";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 7});
  fs::rename(newest, scratch);
  fs::create_symlink(scratch, newest);
  CHECK(open_run(run).state.step == 7);
  fs::remove(scratch);
  CHECK_THROWS_AS(open_run(run), CheckpointError);
  CHECK_THROWS_WITH(open_run(run), newest.string() + ": cannot be read: No such file or directory");
  CHECK(open_run(run, {}, "5").state.step == 5);
}

TEST_CASE("the last step is that of the last whole line of the metrics", "[train]") {
  const TemporaryDirectory directory;
  const RunDirectory run = directory.path();
  CHECK(run.last_step() == 0);
  const std::string first = R"({"step":1,"split":"train"})", second = R"({"step":20,"split":"train"})";
  const std::pair<std::string, std::int64_t> cases[] = {{"", 0},
                                                        {first, 0},  // is being written
                                                        {first + "\n", 1},
                                                        {first + "\n" + second, 1},
                                                        {first + "\n" + second + "\n", 20},
                                                        {"{}\n", 0}};
  for (const auto& [text, step] : cases) {
    CAPTURE(text);
    write_file(directory / "metrics.jsonl", text);
    CHECK(run.last_step() == step);
  }
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

TEST_CASE("a series of checkpoints is of one run, without those that are not", "[train]") {
  const TemporaryDirectory directory;
  Config config = short_run_config(12), other = config;
  config.train.checkpoint_series = other.train.checkpoint_series = true;
  other.train.seed = 1;
  train(config, {.directory = (directory / "run").string()});
  train(other, {.directory = (directory / "other").string()});
  const ModelSource model = open_run(directory / "run");
  std::vector<std::string> remarks;
  const auto steps_beside = [&](const std::shared_ptr<const SafetensorsFile>& open) {
    std::vector<std::int64_t> steps;
    for (const auto& [step, file] : model.run.series(open, remarks)) {
      steps.push_back(step);
      CHECK(file->metadata().at("step") == std::to_string(step));
    }
    return steps;
  };
  const std::vector<std::int64_t> steps = {1, 2, 5, 10, 12};
  CHECK(steps_beside(model.file) == steps);
  CHECK(steps_beside(open_run(directory / "run", {}, "5").file) == steps);  // the final one is opened newly
  CHECK(steps_beside(nullptr) == steps);
  CHECK(remarks.empty());
  const fs::path checkpoints = directory / "run" / "checkpoints";
  fs::copy_file(directory / "other" / "checkpoints" / "step-5.safetensors",
                checkpoints / "step-5.safetensors", fs::copy_options::overwrite_existing);
  write_file(checkpoints / "step-2.safetensors", "x");
  CHECK(model.run.series(model.file, remarks).size() == 3);
  REQUIRE(remarks.size() == 2);
  CHECK_THAT(remarks[0], ContainsSubstring("train.seed: 1 in the checkpoint, 42 in config.yaml"));
}
