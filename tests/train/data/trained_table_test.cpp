// Tables read with the vocabulary of a trained model, the record of its data, and what may be a mistake in
// a file.

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/train/data_record.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "train/data/table/table.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

namespace {

const DataRecord kTrained{
    .vocabulary = {"zebra", "ant", "bee", "cat"}, .longest = {3, 2}, .length = 3, .source_length = 0};

Table read_trained(const DataText& main, const DataText& test) {
  return Table({.main = main, .validation = {{"v.tsv", "cat\tbee"}}, .test = test, .vocabulary = {}},
               &kTrained);
}

std::string complaint_on(const Table& table, Split split) {
  try {
    table.require_rows(split);
  } catch (const DataError& e) {
    return e.what();
  }
  return "accepted";
}

// Returns the remarks on a main file alone.
std::vector<std::string> remarks(const std::string& text, const TableOptions& options = {}) {
  const std::string other = options.header ? "h\th\nv\tw" : "v\tw";
  DataTexts texts{.main = {"t.tsv", text}, .validation = {{"v.tsv", other}}, .test = {{"w.tsv", other}}};
  texts.options = options;
  std::vector<std::string> lines = Table(texts).remarks();
  std::erase_if(lines, [](const std::string& line) {
    return line.starts_with("w.tsv:") || line.find("never occur in training") != line.npos;
  });
  return lines;
}

}  // namespace

TEST_CASE("a trained model's tokens keep their ids, whatever a file has", "[data]") {
  const Table table = read_trained({"t.tsv", "bee\tcat"}, {"w.tsv", "ant zebra\tzebra"});
  CHECK(table.tokens() == kTrained.vocabulary);
  Example e;
  table.example(0, e);
  CHECK(e.input == std::vector<std::int32_t>{2});
  CHECK(e.target == std::vector<std::int32_t>{3});
  table.example(2, e);
  CHECK(e.input == std::vector<std::int32_t>{1, 0});
  CHECK(table.longest().input == 3);  // as in training
  CHECK(table.longest().target == 2);
  CHECK(read_trained({"t.tsv", "bee bee bee bee\tcat"}, {"w.tsv", "ant\tant"}).longest().input == 4);
}

TEST_CASE("a file that a trained model cannot read costs its splits and no more", "[data]") {
  const Table unknown = read_trained({"t.tsv", "bee\tcat"}, {"w.tsv", "ant\tant\nant bees\tant\ndog\tant"});
  CHECK(unknown.splits() == std::array<std::int64_t, 3>{1, 1, 0});
  CHECK(complaint_on(unknown, Split::train) == "accepted");
  CHECK(complaint_on(unknown, Split::test) ==
        "w.tsv: 2 problems\n"
        "w.tsv:2: token bees is not in the vocabulary that the model was trained with, did you mean bee?\n"
        "w.tsv:3: token dog is not in the vocabulary that the model was trained with\n"
        "so the test split is empty; restore the file, or set another with task.file or task.test_file=FILE");
  DataText gone{.name = "t.tsv", .text = "", .unreadable = "t.tsv: cannot be read: No such file"};
  const Table missing = read_trained(gone, {"w.tsv", "ant\tant"});
  CHECK(missing.splits() == std::array<std::int64_t, 3>{0, 1, 1});
  CHECK(complaint_on(missing, Split::validation) == "accepted");
  CHECK(complaint_on(missing, Split::train) ==
        "t.tsv: cannot be read: No such file\n"
        "so the train split is empty; restore the file, or set another with task.file=FILE");
  const Table nothing({.main = gone, .validation = {}, .test = {}, .vocabulary = {}}, &kTrained);
  CHECK(nothing.rows() == 0);
  for (const Split split : {Split::train, Split::validation, Split::test})
    CHECK(complaint_on(nothing, split).starts_with("t.tsv: cannot be read"));
  CHECK(nothing.tokens() == kTrained.vocabulary);
}

TEST_CASE("a record of the training data is written and read", "[data]") {
  const TemporaryDirectory directory;
  const auto written = [&](const std::string& name, const std::string& content) {
    write_file(directory / name, content);
    return (directory / name).string();
  };
  TaskConfig task{.name = "file"};
  task.file = written("t.tsv", "b\ta\n");
  task.validation_file = written("v.tsv", "a b\tb");
  task.test_file = written("w.tsv", "a\tb b");
  const Table table(open_files(task, nullptr));
  const DataRecord record = record_of(table, Layout::seq2seq, 0);
  CHECK(record.vocabulary == std::vector<std::string>{"a", "b", "<begin>", "<end>"});
  CHECK((record.longest.input == 2 && record.longest.target == 2));
  CHECK((record.length == 3 && record.source_length == 2));
  REQUIRE(record.files.size() == 3);
  CHECK((record.files[0].key == "file" && record.files[0].bytes == 4 && record.files[0].path == task.file));

  const std::filesystem::path run = directory / "runs" / "a";
  const Json json = to_json(record, run);
  CHECK(json["files"][1]["relative"] == "../../v.tsv");
  CHECK_FALSE(to_json(record)["files"][1].contains("relative"));
  const DataRecord again = parse_record(json_text(json), run);
  CHECK(to_json(again, run) == json);
  CHECK(changed_files(again, table.files()).empty());
  CHECK(differing_files(again.files, table.files()).empty());

  std::filesystem::create_directories(directory / "elsewhere");
  std::filesystem::rename(directory / "v.tsv", directory / "elsewhere" / "v.tsv");
  CHECK(parse_record(json_text(json), directory / "elsewhere" / "runs" / "a").files[1].moved ==
        (directory / "elsewhere" / "v.tsv").string());
  written("t.tsv", "b\tb\n");
  std::filesystem::rename(directory / "elsewhere" / "v.tsv", directory / "v.tsv");
  const Table now(open_files(task, nullptr));
  const std::vector<std::string> changed = changed_files(record, now.files());
  REQUIRE(changed.size() == 1);
  CHECK(changed[0] ==
        fmt::format("{} has changed since training: 4 bytes, hash {} then, 4 bytes, hash {} now", task.file,
                    record.files[0].hash, now.files()[0].hash));
  CHECK(record.files[0].hash != now.files()[0].hash);
  CHECK(differing_files(record.files, now.files()).size() == 1);
  CHECK(differing_files(record.files, {}).size() == 3);
}

TEST_CASE("an invalid record is refused", "[data]") {
  for (const char* text : {"", "{}", "[]", R"({"vocabulary": [1]})",
                           R"({"vocabulary": [], "longest": {"input": 1, "target": 1}, "length": 1,
                               "source_length": 0, "files": []})",
                           R"({"vocabulary": ["a"], "longest": {"input": -1, "target": 1}, "length": 1,
                               "source_length": 0, "files": []})"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_record(std::string(text)), DataError);
  }
}

TEST_CASE("problems of one kind are shown once, with the layout that suits the file", "[data]") {
  std::string text;
  for (int i = 0; i < 600; ++i) text += fmt::format("w{} is {}\tyes\n", i, i % 7 == 0 ? "a b" : "c");
  const DataTexts texts{.main = {"t.tsv", text},
                        .validation = {{"v.tsv", "a b\tno"}},
                        .test = {{"w.tsv", "a\tno"}},
                        .vocabulary = {}};
  CHECK_THROWS_WITH(
      Table(texts).check(Layout::position),
      "t.tsv: 601 problems\n"
      "t.tsv:1: 1 answer for 4 tokens: one output per position requires as many answers as tokens; set model.output.per=sequence (and 599 more lines like it: 2, 3, 4, ...)\n"
      "v.tsv:1: 1 answer for 2 tokens: one output per position requires as many answers as tokens; set model.output.per=sequence");
  DataTexts longer = texts;
  longer.test->text = "a\tno no";
  CHECK_THROWS_WITH(
      Table(longer).check(Layout::sequence),
      "w.tsv: 1 problem\nw.tsv:1: 2 answers: one output per sequence requires exactly 1; if a field is one label, set task.target_tokens=field; else set model.output.per=next model.attention.mask=causal");
}

TEST_CASE("contradictions, repetitions and headers are pointed out", "[data]") {
  const std::string good = "the cat\tnoun\nthe run\tverb\na dog\tnoun\na jump\tverb\n";
  CHECK(remarks(good).empty());
  CHECK(remarks(good + "the cat\tverb\nthe cat\tverb\n").at(0) ==
        "t.tsv:5: same input with another target as in t.tsv:1 (and 1 more); no model can predict both");
  CHECK(remarks(good + good).at(0) ==
        "t.tsv:5: same input and target as in t.tsv:1 (and 4 more); duplicates weigh as often as they occur");
  const std::string header =
      "t.tsv:1: the first line may be a header; if it is not an example, set task.header=true";
  CHECK(remarks("text\tlabel\n" + good).at(0) == header);
  CHECK(remarks("Sentence\tkind\n" + good).at(0) == header);            // labels repeat, this one does not
  CHECK(remarks("input\toutput\na\tb\nc\td\ne\tf\n").at(0) == header);  // column names
  CHECK(remarks("text\tlabel\n" + good, {.header = true}) == std::vector<std::string>{});
  CHECK(remarks("x\tfirst\na\tb\nc\td\ne\tf\n").empty());           // an answer as rare as the others
  CHECK(remarks("input\toutput\na\tinput\nc\td\ne\tf\n").empty());  // a token like others
}

TEST_CASE("fields in quotes, tokens that are none, and numbers as classes are pointed out", "[data]") {
  const Table quoted({.main = {"t.tsv", "\"a b\"\t\"c\"\n\"b\"\t\"c d\"\n"},
                      .validation = {{"v.tsv", "\"b\"\t\"c\""}},
                      .test = {{"w.tsv", "\"b\"\t\"c\""}}});
  const std::string quotes =
      "t.tsv:1: every field is in quotes, which are part of its tokens; to drop them, set task.format=csv task.separator='\"\\t\"'";
  CHECK(std::ranges::count(quoted.remarks(), quotes) == 1);

  std::string words, numbers;
  for (int i = 0; i < 40; ++i) words += fmt::format("word{}\ty\n", i), numbers += fmt::format("a\t{}.5\n", i);
  CHECK(
      remarks(words).at(0) ==
      "40 of 41 tokens in inputs occur once: are they separated by spaces? if not, set task.input_tokens=characters, or words");
  CHECK(remarks(words, {.input_tokens = Tokenization::characters}).empty());
  std::string classes;
  for (int i = 0; i < 80; ++i) classes += fmt::format("a{} b\t{}\n", i % 10, i % 30);
  const auto number_remarks = [](std::string text) {
    const Table table({.main = {"t.tsv", text}, .validation = {{"v.tsv", text}}, .test = {{"w.tsv", text}}});
    return std::ranges::count_if(table.remarks(), [](const std::string& line) {
      return line.starts_with("targets are 30 different numbers, each of which is a class of its own");
    });
  };
  CHECK(number_remarks(classes) == 1);
  CHECK(number_remarks(classes + "a b\tnone\n") == 0);
}

TEST_CASE("tokens that look alike are pointed out", "[data]") {
  const auto alike = [](const std::string& a, const std::string& b) {
    const std::vector<std::string> lines = remarks(fmt::format("{} x\ty\n{} x\ty\nx v\ty\n", a, b));
    return lines.empty() ? "" : lines[0];
  };
  CHECK(alike("caf\u00e9", "cafe\u0301") ==
        "tokens cafe\\u{301} and caf\\u{e9} look the same; write such tokens in one way");
  CHECK(alike("a\u00a0b", "ab") == "tokens ab and a\\u{a0}b look the same; write such tokens in one way");
  CHECK(alike("a\u3000b", "c") ==
        "token a\\u{3000}b has a character that is not seen; write such tokens in one way");
  CHECK(alike("\u2764", "\u2764\ufe0f") ==
        "tokens \\u{2764} and \\u{2764}\\u{fe0f} look the same; write such tokens in one way");
  CHECK(alike("cafe", "caf\u00e9").empty());
  CHECK(alike("caf\u00e8", "caf\u00e9").empty());
}

TEST_CASE("outliers of length, markers and what training never has are pointed out", "[data]") {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "a b\tx\n";
  std::string line = "a";
  for (int i = 0; i < 50; ++i) line += " b";
  const auto last = [&](const std::string& more, const TableOptions& options = {}) {
    return remarks(text + more, options).back();
  };
  CHECK(
      last(line + "\tx\n") ==
      "the longest sequence has 51 tokens, 99 % of the lines at most 2; task.max_tokens=2 leaves longer ones out");
  CHECK(last(line + "\tx\n", {.max_tokens = 2}) ==
        "1 line with more than task.max_tokens=2 tokens is left out");
  CHECK(
      last("_ b\tx _\n") ==
      "_ occurs 1 times in inputs, and marks 1 positions of targets as without an answer; if _ is a token here, set task.no_answer=\"\"");
  DataTexts texts{
      .main = {"t.tsv", "a\tx\nb\ty\n"}, .validation = {{"v.tsv", "a c\tx"}}, .test = {{"w.tsv", "d\tz"}}};
  CHECK(
      Table(texts).remarks().back() ==
      "60.0 % of the tokens of validation and test (3 of 5) never occur in training; task.vocabulary=training replaces such tokens by <unk>");
  texts.options = {.vocabulary = VocabularyOf::training, .min_count = 1};
  CHECK(
      Table(texts).remarks().back() ==
      "50.0 % of the answers of validation and test (1 of 2) are <unk>, for which no prediction is counted right");
}
