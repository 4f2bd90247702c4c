// A run is complete: what becomes of it when its data files change, move or go, and other data it is asked
// about.
#include <cmath>

#include "catch.h"
#include "problems.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/forward_trace.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "thimble/train/train.h"
#include "train/config/small_config.h"
#include "train/data/table/table.h"
#include "train/files/temporary_directory.h"
#include "train/runs/run_files.h"
#include "train/step/trainer.h"

using namespace thimble;

namespace {

// Words and their kinds.
std::string pairs(const std::string& prefix) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += fmt::format("{}{} is\t{}\n", prefix, i % 12, i % 3 == 0 ? "noun" : "verb");
  return text;
}

struct FileRun {
  TemporaryDirectory directory;
  std::filesystem::path run = directory / "run";
  OpenConfig config;
  TrainResult result;

  explicit FileRun(const std::string& positions = "sinusoidal") {
    for (const char* name : {"main", "validation", "test"})
      write_file(directory / (std::string(name) + ".tsv"), pairs("w"));
    config = open_data(parse_config(
        fmt::format(
            "task: {{name: file, file: {0}/main.tsv, validation_file: {0}/validation.tsv, test_file: {0}/test.tsv}}\n"
            "model: {{d_model: 16, positions: {1}, output: {{per: sequence}}}}\n"
            "train: {{steps: 40, batch: 20, threads: 1, optimizer: {{lr: 0.01}}, precision: {2}}}",
            directory.path().string(), positions, sizeof(Real) == 8 ? "float64" : "float32"),
        "t.yaml"));
    result = train(config, {.directory = run.string()});
  }
  std::string file(const std::string& name) const { return (directory / name).string(); }
};

}  // namespace

TEST_CASE("data that is gone leaves the rest of a run", "[train]") {
  const FileRun trained;
  const ForwardTrace before = trace_input(open_run(trained.run), "w3 is");
  for (const char* name : {"main.tsv", "test.tsv"}) std::filesystem::remove(trained.file(name));
  const ModelSource source = open_run(trained.run);
  CHECK(source.changes.size() == 2);
  CHECK(std::ranges::all_of(source.changes, &FileChange::unreadable));
  CHECK(trace_input(source, "w3 is").logits == before.logits);
  CHECK(unseen_in(source, "w3 is", 10).empty());
  const EvalResult report = evaluate(source, Split::validation);
  CHECK(report.loss == trained.result.validation->loss);
  CHECK_FALSE(report.chance.has_value());
  CHECK_THROWS_AS(evaluate(source, Split::test), DataError);
  CHECK_THROWS_WITH(
      evaluate(source, Split::test),
      ContainsSubstring("test.tsv: the data file of the run is gone") && EndsWith("task.test_file=FILE"));
  const ModelSource other = open_run(trained.run, {"task.test_file=" + trained.file("validation.tsv")});
  CHECK(evaluate(other, Split::test).loss == trained.result.validation->loss);
}

TEST_CASE("a vocabulary file must be the one of training", "[train]") {
  const FileRun trained;
  const std::string file = trained.file("words.txt"), same = trained.file("same.txt"),
                    other = trained.file("other.txt");
  std::string words;
  for (const std::string& token : vocabulary(open_run(trained.run))) words += token + "\n";
  for (const std::string& name : {file, same}) write_file(name, words);
  write_file(other, words + "more\n");
  const auto refused =
      ContainsSubstring("the model keeps the vocabulary that it was trained with; remove the file");
  CHECK_THROWS_WITH(open_run(trained.run, {"task.vocabulary_file=" + file}), refused);  // trained without one
  const OpenConfig config = open_config(trained.run / "config.yaml", {"task.vocabulary_file=" + file});
  const std::filesystem::path run = trained.directory / "with_words";
  train(config, {.directory = run.string()});
  CHECK_NOTHROW(open_run(run));
  CHECK_NOTHROW(open_run(run, {"task.vocabulary_file=" + same}));
  CHECK_THROWS_WITH(open_run(run, {"task.vocabulary_file=" + other}), refused);
  std::filesystem::create_directory(trained.directory / "moved");
  for (const char* name : {"with_words", "main.tsv", "validation.tsv", "test.tsv", "words.txt"})
    std::filesystem::rename(trained.directory / name, trained.directory / "moved" / name);
  CHECK(open_run(trained.directory / "moved" / "with_words").changes.empty());
}

TEST_CASE("positions that an encoder-decoder has not learned are refused for its source, too", "[train]") {
  const TemporaryDirectory directory;
  const std::string data = (directory / "d.tsv").string(), longer = (directory / "long.tsv").string();
  write_file(data, "a b\tb a\nb b\ta a\na a\tb b\n");
  write_file(longer, "a b a b a b\tb a\n");
  const OpenConfig config = open_data(parse_config(
      fmt::format(
          "task: {{name: file, file: {0}, validation_file: {0}, test_file: {0}}}\n"
          "model: {{kind: encoder_decoder, d_model: 16, positions: learned}}\n"
          "train: {{steps: 1, batch: 2, shards: 1, threads: 1, schedule: {{warmup: 0}}, precision: {1}}}",
          data, sizeof(Real) == 8 ? "float64" : "float32"),
      "t.yaml"));
  const std::string run = (directory / "run").string();
  train(config, {.directory = run});
  CHECK_NOTHROW(open_run(run));
  CHECK_THROWS_WITH(open_run(run, {"task.test_file=" + longer}),
                    ContainsSubstring("the task needs 6 positions"));
}

TEST_CASE("weights without metadata are opened with a config", "[train]") {
  const FileRun trained;
  const std::string weights = trained.file("weights.safetensors");
  write_safetensors(weights, {}, {});
  CHECK(open_weights(weights, trained.run / "config.yaml").config.task.name == "file");
  CHECK_THROWS_WITH(open_weights(weights, ""), ContainsSubstring("no config in the metadata"));
}

TEST_CASE("a data file that config.yaml no longer names is reported", "[train]") {
  const FileRun trained;
  const std::filesystem::path config = trained.run / "config.yaml";
  std::string text = read_file(config);
  const std::size_t at = text.find("  validation_file:");
  write_file(config, text.erase(at, text.find('\n', at) + 1 - at));
  const ModelSource source = open_run(trained.run);
  REQUIRE(source.changes.size() == 1);
  CHECK_THAT(source.changes[0].text, ContainsSubstring("validation_file"));
  CHECK(open_run(trained.run, {"task.validation_file=" + trained.file("validation.tsv")}).changes.empty());
}

TEST_CASE("another data file in config.yaml is reported unless its content is the same", "[train]") {
  const FileRun trained;
  const std::filesystem::path config = trained.run / "config.yaml";
  const std::string other = trained.file("other.tsv"), named = trained.file("validation.tsv");
  std::string text = read_file(config);
  write_file(config, text.replace(text.find(named), named.size(), other));
  write_file(other, pairs("w"));
  CHECK(open_run(trained.run).changes.empty());
  write_file(other, "w1 is\tverb\n");
  const ModelSource source = open_run(trained.run);
  REQUIRE(source.changes.size() == 1);
  CHECK_THAT(source.changes[0].text, StartsWith("task.validation_file: " + named + ", ") &&
                                         ContainsSubstring(" then; " + other + ", 11 bytes, hash "));
  CHECK_FALSE(source.changes[0].unreadable);
  CHECK(evaluate(source, Split::validation).sequences == 1);
}

TEST_CASE("a run cannot be resumed with other data", "[train]") {
  FileRun trained;
  trained.config.train.steps = 50;
  const auto resume = [&](const std::vector<std::string>& overrides = {}) {
    return train(open_config((trained.run / "config.yaml").string(), overrides),
                 {.directory = trained.run.string(), .resume = true});
  };
  const std::map<std::string, std::string> before = tree(trained.run);
  std::filesystem::rename(trained.file("main.tsv"), trained.file("kept.tsv"));
  write_file(trained.file("main.tsv"), pairs("v"));
  CHECK_THROWS_AS(resume({"train.steps=50"}), ConfigError);
  CHECK_THROWS_WITH(resume({"train.steps=50"}),
                    ContainsSubstring("the training data has changed since the run began") &&
                        ContainsSubstring("task.file: " + trained.file("main.tsv")) &&
                        ContainsSubstring("bytes, hash ") && !ContainsSubstring("test.tsv"));
  CHECK(tree(trained.run) == before);
  // Splits by another rule would have lines of training in validation and test.
  const std::string record = read_file(trained.run / "data.json");
  Json old = parse_json(record);
  REQUIRE(old.erase("split_rule") == 1);
  write_file(trained.run / "data.json", json_text(old));
  CHECK_THROWS_WITH(
      resume({"train.steps=50", "task.file=" + trained.file("kept.tsv")}),
      ContainsSubstring("\n  its splits were made by the hash of the token ids, and this version "
                        "makes them by the hash of the input's text"));
  write_file(trained.run / "data.json", record);
  CHECK(tree(trained.run) == before);
  // The same bytes in another place are the same data.
  CHECK(resume({"train.steps=50", "task.file=" + trained.file("kept.tsv")}).steps == 50);
}

TEST_CASE("what does not fit a trained model is named, with the key", "[train]") {
  const TemporaryDirectory directory;
  Config config = rich_config();  // learned positions, for 7 tokens
  config.train.steps = 2;
  const std::string run = (directory / "run").string();
  train(config, {.directory = run});
  const auto problem = [&](const std::string& change) {
    return problems_of([&] { open_run(run, {change}); }).at(0);
  };
  CHECK(place(problem("task.length=12")) == "argument 1 task.length");
  CHECK_THAT(problem("task.length=12").rule, ContainsSubstring("model.max_length=12"));
  CHECK(place(problem("model.max_length=9")) == "argument 1 model.max_length");
  CHECK(evaluate(open_run(run, {"task.length=4"}), Split::test).sequences > 0);
  CHECK(evaluate(open_run(run, {"task.length=4", "model.max_length=5"}), Split::test).sequences > 0);
  CHECK(evaluate(open_run(run, {"task.length=4", "model.max_length=7"}), Split::test).sequences > 0);
  CHECK(place(problem("task.symbols=9")) == "argument 1 task.symbols");
  CHECK_THAT(problem("task.symbols=9").rule, ContainsSubstring("6 tokens, not 9; token 6 is none, not 6"));
  CHECK_THAT(problem("task.symbols=4").rule, ContainsSubstring("token 4 is 4, not none"));
  CHECK_THROWS_AS(open_run(run, {"task.name=histogram"}), ConfigError);
  CHECK(
      evaluate(open_run(run, {"task.name=reverse", "data.train=1", "data.test=5"}), Split::test).sequences ==
      5);

  Config pairs = writing_config();
  pairs.model.positions = Positions::learned;
  pairs.train.steps = 2;
  const std::string writer = (directory / "writer").string();
  train(pairs, {.directory = writer});
  CHECK_THROWS_WITH(open_run(writer, {"task.length=5"}), ContainsSubstring("model.max_length=6"));
  CHECK(evaluate(open_run(writer, {"task.length=3"}), Split::test).sequences > 0);
}

TEST_CASE("a file is read with the tokens of a model that was trained on a generated task", "[train]") {
  const TemporaryDirectory directory;
  train(small_config(), {.directory = (directory / "run").string()});
  const std::string own = (directory / "own.tsv").string(), config = (directory / "own.yaml").string();
  write_file(own, "5 4 1 0\t0 1 4 5\n1 2 3 4\t4 3 2 1\n");
  write_file(config, fmt::format("task: {{name: file, file: {0}, validation_file: {0}, test_file: {0}}}\n"
                                 "model: {{d_model: 16, heads: 2, d_ff: 24, output: {{hidden: 12}}}}\n"
                                 "train: {{precision: {1}}}\n",
                                 own, sizeof(Real) == 8 ? "float64" : "float32"));
  const ModelSource run = open_run(directory / "run"), source = open_weights(run.weights, config);
  CHECK(vocabulary(source) == vocabulary(run));
  CHECK(trace_input(source, "1 2 3 4").logits == trace_input(run, "1 2 3 4").logits);
  CHECK(evaluate(source, Split::test).sequences == 2);
}

TEST_CASE("chance is that of a constant answer, and no better is a matter of the interval", "[train]") {
  Config config = small_config();
  const EvalResult start = Trainer(config).evaluate(Split::test);
  CHECK(start.chance == 1.0 / 6);
  CHECK(start.lowest_loss == 0.0);
  CHECK_FALSE(Trainer(config).evaluate(Split::train).lowest_loss.has_value());  // it can be learned by heart
  CHECK(start.accuracy_error > 0);

  EvalResult report;
  report.accuracy = 0.2;
  report.sequences = 100;
  report.accuracy_error = 0.02;
  report.chance = 0.17;
  CHECK(report.no_better_than_chance());  // 0.2 - 1.96 * 0.02 is below
  report.accuracy_error = 0.01;
  CHECK_FALSE(report.no_better_than_chance());
  report.accuracy = 0.1;
  CHECK(report.no_better_than_chance());
  report.accuracy_error.reset();
  CHECK_FALSE(report.no_better_than_chance());
  report.accuracy_error = 0.01;
  report.chance.reset();
  CHECK_FALSE(report.no_better_than_chance());

  const FileRun trained;  // two thirds of the answers are "verb"
  CHECK_THAT(*trained.result.test->chance, WithinAbs(2.0 / 3, 1e-12));
  CHECK(trained.result.test->accuracy == 1);
  CHECK_FALSE(trained.result.test->no_better_than_chance());
  const auto json = to_json(trained.result)["test"];
  CHECK(json["chance"].get<double>() == *trained.result.test->chance);
  CHECK(json["no_better_than_chance"] == false);
  CHECK_FALSE(json.contains("lowest_possible_loss"));
}

TEST_CASE("the error of an accuracy is that of the mean over sequences of one length", "[train]") {
  Config config = small_config();
  config.data.test = 40;
  Trainer trainer(config);
  for (int i = 0; i < 30; ++i) trainer.step();
  // The accuracies of single sequences, from evaluations of the first 1, 2, 3, ...
  std::vector<double> right;
  double before = 0;
  for (std::int64_t n = 1; n <= 40; ++n) {
    const double sum = trainer.evaluate(Split::test, n).accuracy * static_cast<double>(n);
    right.push_back(sum - before);
    before = sum;
  }
  const double mean = before / 40;
  double squares = 0;
  for (const double share : right) squares += (share - mean) * (share - mean);
  CHECK(squares > 0);
  CHECK_THAT(*trainer.evaluate(Split::test).accuracy_error, WithinRel(std::sqrt(squares / 39 / 40), 1e-9));
}

TEST_CASE("the constant answer of a model that writes may be the end", "[train]") {
  Config config = writing_config();
  config.task.symbols = 50;
  Trainer trainer(config);
  const EvalResult report = trainer.evaluate(Split::test);
  // Answers have 2 to 4 of 50 tokens, and an end each: a quarter of the labels.
  Batch batch;
  trainer.dataset().fill(Split::test, 0, trainer.dataset().size(Split::test), batch);
  const auto ends = std::ranges::count(batch.row_labels, trainer.dataset().eos_token());
  CHECK(report.chance == static_cast<double>(ends) / static_cast<double>(batch.row_labels.size()));
  CHECK_FALSE(report.lowest_loss.has_value());
}
