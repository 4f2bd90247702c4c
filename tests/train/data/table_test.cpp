#include "train/data/table/table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "catch.h"
#include "small_rows.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/hash.h"
#include "train/files/temporary_directory.h"

using namespace thimble;
using rows::text;
using rows::Tokens;

namespace {

// `count` rows that differ, "0 a", "1 a" and so on, so that every split gets some.
std::string many(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{} a\tb c\n", i);
  return text;
}

Table tsv(const std::string& text) { return Table({.main = {"t.tsv", text}}); }

// A file's own rows and none of its splits: validation and test have files, which the options suit.
Table rows_of(const DataText& main) {
  return Table({.main = main, .validation = {{"v.tsv", "v\tv"}}, .test = {{"w.tsv", "w\tw"}}});
}

std::string complaints(const DataTexts& texts) {
  try {
    const Table table(texts);
  } catch (const DataError& e) {
    return e.what();
  }
  return "accepted";
}

// Returns the problem of a file that consists of one line.
std::string complaint(const std::string& name, const std::string& line) {
  const std::string before = name + ": 1 problem\n" + name + ":1: ";
  const std::string all = complaints({.main = {name, line},
                                      .validation = {{"v.tsv", "v\tv"}},
                                      .test = {{"w.tsv", "w\tw"}},
                                      .vocabulary = {}});
  return all.starts_with(before) ? all.substr(before.size()) : all;
}

}  // namespace

TEST_CASE("tab-separated rows are read, at any number of spaces", "[data]") {
  const Table table = rows_of({"t.tsv", "the  cat \t le chat\r\n2 dogs\t2 _ chiens"});
  CHECK(text(table, 0) == "the cat = le chat");
  CHECK(text(table, 1) == "2 dogs = 2 - chiens");
  CHECK(table.splits() == std::array<std::int64_t, 3>{2, 1, 1});
  CHECK(table.longest().input == 2);
  CHECK(table.longest().target == 3);
  CHECK(text(rows_of({"t.txt", "_ _\ta"}), 0) == "_ _ = a");  // only a target can ask for no answer
}

TEST_CASE("JSON lines are read: lists, texts and integers", "[data]") {
  const Table table =
      rows_of({"t.jsonl",
               "{\"input\": [\"the\", -2, \"c\\u00e9ts\"], \"target\": [null, 18446744073709551615]}\n"
               "{\"target\":7,\"input\":\" a  b \"}\r\n\n"});
  CHECK(text(table, 0) == "the -2 c\xc3\xa9ts = - 18446744073709551615");
  CHECK(text(table, 1) == "a b = 7");
  CHECK(text(rows_of({"t.jsonl", R"({"input": "_", "target": ["_"]})"}), 0) == "_ = _");
  CHECK(rows_of({"t.jsonl", R"({"input": ["7", 7], "target": 7})"}).tokens() ==
        std::vector<std::string>{"7", "v", "w"});
}

TEST_CASE("the vocabulary is sorted, so the order of lines does not change it", "[data]") {
  const std::vector<std::string> sorted{"a", "b", "c", "v", "w", "\xc3\xa9"};
  CHECK(rows_of({"t.tsv", "b a\tc\na \xc3\xa9\tb"}).tokens() == sorted);
  CHECK(rows_of({"t.tsv", "a \xc3\xa9\tb\nb a\tc"}).tokens() == sorted);
}

TEST_CASE("a vocabulary file gives the order, and no other token is allowed", "[data]") {
  const DataTexts texts{.main = {"t.tsv", many(200)},
                        .validation = {},
                        .test = {},
                        .vocabulary = {{"v.txt", "c\nspare\r\nb\na\n"}}};
  CHECK_THAT(complaints(texts),
             StartsWith("t.tsv: 200 problems\nt.tsv:1: token 0 is not in the vocabulary file\n"));
  DataTexts close = texts;
  close.main.text = "a\tb\nsparse\tb";
  CHECK(complaints(close) ==
        "t.tsv: 1 problem\nt.tsv:2: token sparse is not in the vocabulary file, did you mean spare?");
  close.main.text = "a c\tb";
  close.validation = close.test = close.main;
  CHECK(Table(close).tokens() == std::vector<std::string>{"c", "spare", "b", "a"});
  CHECK(text(Table(close), 0) == "a c = b");
}

TEST_CASE("a vocabulary file that breaks a rule is refused", "[data]") {
  DataTexts texts{.main = {"t.tsv", "a\ta"},
                  .validation = {{"t.tsv", "a\ta"}},
                  .test = {{"t.tsv", "a\ta"}},
                  .vocabulary = {{"v.txt", ""}}};
  const auto refused = [&](const std::string& vocabulary) {
    texts.vocabulary->text = vocabulary;
    return complaints(texts);
  };
  CHECK(refused("a") == "accepted");
  CHECK(refused("a\nb\na") == "v.txt: 1 problem\nv.txt:3: duplicate token a");
  CHECK(refused("a\n\nb") == "v.txt: 1 problem\nv.txt:2: blank line; delete it");
  CHECK(refused("a\nb\x01") == "v.txt: 1 problem\nv.txt:2: control character in token b\\u{1}");
  CHECK_THAT(refused(""), StartsWith("v.txt: 4 problems\nv.txt: the file is empty"));
}

TEST_CASE("one file: equal inputs are in one split, whatever their targets and lines", "[data]") {
  const Table table = tsv(many(500) + many(500));
  CHECK(table.disjoint());
  const auto [train, validation, test] = table.splits();
  CHECK(train + validation + test == 1000);
  CHECK_THAT(static_cast<double>(validation), WithinAbs(100, 60));
  CHECK_THAT(static_cast<double>(test), WithinAbs(100, 60));
  std::map<std::string, std::set<int>> found;
  for (std::int64_t row = 0; row < 1000; ++row)
    found[text(table, table.stored_of(row))].insert(row < train ? 0 : row < train + validation ? 1 : 2);
  CHECK(found.size() == 500);
  for (const auto& [row, splits] : found) CHECK(splits.size() == 1);
}

TEST_CASE("a line's place does not depend on the other lines", "[data]") {
  // Returns the texts of the rows by split, in their order.
  const auto splits = [](const std::vector<std::string>& lines) {
    std::string all;
    for (const std::string& line : lines) all += line + '\n';
    const Table table = tsv(all);
    std::array<std::vector<std::string>, 3> found;
    for (std::int64_t row = 0; row < table.rows(); ++row) {
      const auto [train, validation, test] = table.splits();
      found[row < train ? 0 : row < train + validation ? 1 : 2].push_back(text(table, table.stored_of(row)));
    }
    return found;
  };
  const auto is_subsequence = [](const std::vector<std::string>& some, const std::vector<std::string>& all) {
    auto at = all.begin();
    for (const std::string& one : some) {
      at = std::find(at, all.end(), one);
      if (at == all.end()) return false;
    }
    return true;
  };
  std::vector<std::string> lines;
  for (int i = 0; i < 400; ++i) lines.push_back(fmt::format("w{} x{}\tt{}", i * 7919 % 400, i % 30, i % 5));
  const auto all = splits(lines);
  std::mt19937 random(1);
  std::ranges::shuffle(lines, random);
  CHECK(splits(lines) == all);
  // Tokens that sort before all others change every id of the vocabulary.
  std::vector<std::string> more = lines;
  for (int i = 0; i < 50; ++i) more.insert(more.begin() + 8 * i, fmt::format("A A{}\tA", i));
  const auto with_more = splits(more);
  for (std::size_t i = 0; i < 3; ++i) CHECK(is_subsequence(all[i], with_more[i]));
  lines.resize(300);
  const auto with_fewer = splits(lines);
  for (std::size_t i = 0; i < 3; ++i) CHECK(is_subsequence(with_fewer[i], all[i]));
}

TEST_CASE("the first rows of a split are a sample of all its lines", "[data]") {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += fmt::format("{:04} a\tb\n", i);  // sorted
  const Table table = tsv(text);
  const std::int64_t train = table.splits()[0];
  double sum = 0;
  for (std::int64_t row = 0; row < 400; ++row) sum += table.stored_of(row);
  CHECK_THAT(sum / 400, WithinAbs(1500, 4 * 3000 / std::sqrt(12.0 * 400)));
  sum = 0;
  for (std::int64_t row = train; row < train + table.splits()[1]; ++row) sum += table.stored_of(row);
  CHECK_THAT(sum / static_cast<double>(table.splits()[1]), WithinAbs(1500, 250));
}

TEST_CASE("a split with a file of its own takes nothing from the main file", "[data]") {
  DataTexts texts{.main = {"t.tsv", many(300)},
                  .validation = {},
                  .test = {{"test.jsonl", R"({"input": "0 a", "target": "b"})"}},
                  .vocabulary = {}};
  const Table one(texts);
  CHECK_FALSE(one.disjoint());
  CHECK(one.splits()[2] == 1);
  CHECK(one.splits()[0] > 230);
  CHECK(one.splits()[1] > 10);
  CHECK(text(one, one.stored_of(one.splits()[0] + one.splits()[1])) == "0 a = b");
  texts.validation = {{"validation.tsv", "x\ty"}};
  CHECK(Table(texts).splits() == std::array<std::int64_t, 3>{300, 1, 1});
}

TEST_CASE("a file that leaves a split without rows is refused", "[data]") {
  CHECK(
      complaints({.main = {"t.tsv", "b\tb"}, .validation = {}, .test = {}, .vocabulary = {}}) ==
      "t.tsv: 1 problem\nt.tsv: none of the 1 lines is in the validation split; add lines, or set task.validation_file");
}

TEST_CASE("the most frequent answer is the best constant guess", "[data]") {
  CHECK(rows_of({"t.tsv", "a\tx x\nb\tx _\nc\ty"}).chance() == 3.0 / 6);
}

TEST_CASE("rows that cannot be laid out are reported with their lines", "[data]") {
  const Table table({.main = {"t.tsv", "a b\tc d\na\tb\na\tb c"},
                     .validation = {{"v.tsv", "a\tb\na b\tb _"}},
                     .test = {{"w.tsv", "a\t_ b"}},
                     .vocabulary = {}});
  CHECK_THROWS_AS(table.check(Layout::position), DataError);
  CHECK_THROWS_WITH(
      table.check(Layout::position),
      "t.tsv: 2 problems\n"
      "t.tsv:3: 2 answers for 1 token: one output per position requires as many answers as tokens\n"
      "w.tsv:1: 2 answers for 1 token: one output per position requires as many answers as tokens");
  CHECK_THROWS_WITH(
      table.check(Layout::sequence),
      "t.tsv: 4 problems\n"
      "t.tsv:1: 2 answers: one output per sequence requires exactly 1; if a field is one label, set task.target_tokens=field (and 1 more line like it: 3)\n"
      "v.tsv:2: 2 answers: one output per sequence requires exactly 1; if a field is one label, set task.target_tokens=field\n"
      "w.tsv:1: 2 answers: one output per sequence requires exactly 1; if a field is one label, set task.target_tokens=field");
  const std::string sparse =
      ": a position without an answer: one output per next token requires an answer at every position; if _ is a token here, set task.no_answer=\"\", or write \\_ for it";
  CHECK_THROWS_WITH(table.check(Layout::next), "v.tsv: 2 problems\nv.tsv:2" + sparse + "\nw.tsv:1" + sparse);
  CHECK_NOTHROW(rows_of({"t.tsv", "a b\tc d"}).check(Layout::position));
  CHECK_NOTHROW(rows_of({"t.tsv", "a b\tc d e"}).check(Layout::next));
  CHECK_NOTHROW(rows_of({"t.tsv", "a b\tc"}).check(Layout::sequence));
}

TEST_CASE("a line that is not text is refused", "[data]") {
  for (const char* name : {"t.tsv", "t.jsonl"}) {
    CAPTURE(name);
    CHECK(complaint(name, "a\xff\tb") == "invalid UTF-8 at byte 2 of the line; save the file as UTF-8");
    CHECK(complaint(name, std::string("a\0\tb", 4)) == "NUL byte at byte 2 of the line; delete it");
    CHECK(complaint(name, "\xff\xfe\n\xff") ==
          fmt::format("{0}: 1 problem\n{0}: UTF-16; convert it: iconv -f UTF-16 -t UTF-8 {0} > NEW", name));
    CHECK(complaint(name, "  \nx") != "accepted");
    CHECK(complaint(name, std::string((1 << 20) + 1, 'x')) ==
          "line of 1048577 bytes; the maximum is 1048576");
  }
  CHECK(complaint("t.tsv", "a\tb\n\n\r\n") == "accepted");
  CHECK(complaints({.main = {"t.tsv", "a\tb\n\na\tb"}, .validation = {}, .test = {}, .vocabulary = {}}) ==
        "t.tsv: 1 problem\nt.tsv:2: blank line; delete it");
  CHECK(complaints({.main = {"t.tsv", "\n\r\n"}, .validation = {}, .test = {}, .vocabulary = {}}) ==
        "t.tsv: 1 problem\nt.tsv: the file is empty");
  CHECK(
      complaints({.main = {"t.dat", "a\tb"}}) ==
      "t.dat: 1 problem\nt.dat: unknown format; the name must end in .tsv, .txt, .csv, .jsonl, .conllu, .conll, .bio or .iob, or set task.format");
  CHECK(complaints({.main = {"t.tsv", "\x1f\x8b\x08"}}) ==
        "t.tsv: 1 problem\nt.tsv: compressed by gzip; unpack it: gunzip < t.tsv > NEW");
}

TEST_CASE("a line without exactly one tab is refused", "[data]") {
  const std::string rule =
      "; a line must have 1, between input and target, unless task.input and task.target name columns";
  CHECK(complaint("t.tsv", "a b") == "0 tabs" + rule);
  CHECK(complaint("t.tsv", "a\tb\tc") == "2 tabs" + rule);
}

TEST_CASE("a sequence without tokens, without answers or with too many is refused", "[data]") {
  CHECK(complaint("t.tsv", "\tb") == "empty input; leave out such lines with task.skip_empty=true");
  CHECK(complaint("t.tsv", "a\t ") == "empty target; leave out such lines with task.skip_empty=true");
  CHECK(complaint("t.tsv", "a\t_ _") == "target without an answer; at least 1 position must have one");
  CHECK(complaint("t.jsonl", R"({"input": [], "target": "a"})") ==
        "empty input; leave out such lines with task.skip_empty=true");
  CHECK(complaint("t.jsonl", R"({"input": "a", "target": ""})") ==
        "empty target; leave out such lines with task.skip_empty=true");
  CHECK(complaint("t.jsonl", R"({"input": "a", "target": [null]})") ==
        "target without an answer; at least 1 position must have one");
  std::string words;
  for (int i = 0; i < 8192; ++i) words += "a ";
  CHECK(complaint("t.tsv", words + "\tb") == "accepted");
  CHECK(complaint("t.tsv", words + "a\tb") ==
        "input of 8193 tokens; the maximum is 8192; leave out such lines with task.max_tokens");
  CHECK(complaint("t.tsv", "b\t" + words + "a") ==
        "target of 8193 tokens; the maximum is 8192; leave out such lines with task.max_tokens");
}

TEST_CASE("a token that breaks a rule is refused", "[data]") {
  CHECK(complaint("t.tsv", "a\x01\tb") == "control character in token a\\u{1}");
  CHECK(complaint("t.tsv", "a\x7f\tb") == "control character in token a\\u{7f}");
  CHECK(complaint("t.jsonl", R"({"input": "a\u001bb", "target": 1})") ==
        "control character in token a\\u{1b}b");
  CHECK(complaint("t.jsonl", R"({"input": ["a\u0000"], "target": 1})") ==
        "control character in token a\\u{0}");
  CHECK(complaint("t.jsonl", R"({"input": [""], "target": 1})") == "empty token");
  CHECK(complaint("t.tsv", std::string(4096, 'a') + "\tb") == "accepted");
  CHECK(complaint("t.tsv", std::string(4097, 'a') + "\tb") ==
        "token of 4097 bytes, " + std::string(100, 'a') + "...; the maximum is 4096");
}

TEST_CASE("a line that is not a JSON object of input and target is refused", "[data]") {
  const auto refused = [](const std::string& line) { return complaint("t.jsonl", line); };
  const std::string object = R"({"input": ..., "target": ...})";
  for (const char* line : {"3", "[]", "null", "\"a\"", "true", "1.5"}) {
    CAPTURE(line);
    CHECK(refused(line) == "a line must be " + object);
  }
  CHECK(refused("{") == "not valid JSON at byte 2");
  CHECK(refused("{\"input\": \"a\", \"target\": \"b\",}") == "not valid JSON at byte 30");
  CHECK(refused(R"({"input": "a", "target": "b"} x)") == "not valid JSON at byte 31");
  CHECK(refused(R"({"input": "\ud800", "target": "b"})").starts_with("not valid JSON"));
  CHECK(refused(R"({"input": "a"})") == "missing key target; a line must be " + object);
  CHECK(refused(R"({"target": "a"})") == "missing key input; a line must be " + object);
  CHECK(refused(R"({"input": "a", "target": "b", "weight": 1})") ==
        "unknown key weight; a line must be " + object + ", unless task.input and task.target name its keys");
  CHECK(refused(R"({"input": "a", "input": "b", "target": "c"})") == "duplicate key input");
  CHECK(
      refused(R"({"input": [null], "target": "c"})") ==
      "null in the input; only targets can have positions without an answer: write a token, or null for all of the field and set task.skip_empty=true");
  for (const char* value : {"1.5", "1e2", "{}", "[[]]", "[1.5]", "[{}]", "18446744073709551616"}) {
    CAPTURE(value);
    CHECK(refused(fmt::format(R"({{"input": "a", "target": {}}})", value)) ==
          "target must be a text, an integer of 64 bits, true or false, or a list of these");
  }
  CHECK(refused(std::string(1'000'000, '[')) == "nests more than 127 deep");
}

TEST_CASE("more tokens than a vocabulary can have are refused", "[data]") {
  std::string text;
  for (int i = 0; i < 65536 - 2; ++i) text += fmt::format("{} ", i) + (i % 8000 == 7999 ? "\t0\n" : "");
  CHECK(rows_of({"t.tsv", text + "\t0"}).tokens().size() == 65536);
  CHECK(
      complaint("t.tsv", text + "x\t0") ==
      "t.tsv: 1 problem\nt.tsv: 65537 different tokens; the maximum is 65536; replace rare ones with task.min_count=2");
}

TEST_CASE("twenty problems are shown, the others counted", "[data]") {
  std::string text;
  for (std::size_t i = 0; i < 23; ++i) text += "x" + std::string(i + 2, '\t') + "\n";
  const std::string all =
      complaints({.main = {"t.tsv", text}, .validation = {{"v.tsv", "x"}}, .test = {}, .vocabulary = {}});
  CHECK_THAT(all, StartsWith("t.tsv: 24 problems\nt.tsv:1: 2 tabs"));
  CHECK_THAT(
      all,
      EndsWith(
          "\nt.tsv:20: 21 tabs; a line must have 1, between input and target, unless task.input and task.target name columns\nand 4 more"));
}

TEST_CASE("tables are loaded from the files that a task config names", "[data]") {
  const TemporaryDirectory directory;
  const auto written = [&](const std::string& name, const std::string& content) {
    write_file(directory / name, content);
    return (directory / name).string();
  };
  TaskConfig config{.name = "file"};
  config.file = written("t.tsv", "a\tb");
  config.validation_file = written("v.jsonl", R"({"input": "b", "target": "a"})");
  config.test_file = written("w.txt", "a\ta");
  config.vocabulary_file = written("words", "b\na");
  const Table table(open_files(config, nullptr));
  CHECK(table.tokens() == std::vector<std::string>{"b", "a"});
  CHECK(text(table, 0) == "a = b");
  CHECK(text(table, 1) == "b = a");
  CHECK(text(table, 2) == "a = a");
}

TEST_CASE("a file that cannot be read or is larger than 1 GiB is refused", "[data]") {
  const TemporaryDirectory directory;
  TaskConfig config{.name = "file", .file = directory / "t.tsv"};
  const std::string refused = config.file + ": ";
  CHECK_THROWS_WITH(file_source(config, Layout::position),
                    refused + "cannot be read: No such file or directory; set another with task.file=FILE");
  write_file(config.file, "");
  std::filesystem::resize_file(config.file, (std::uintmax_t{1} << 30) + 1);
  CHECK_THROWS_WITH(file_source(config, Layout::position),
                    refused + "1073741825 bytes; 1073741824 is the most; set another with task.file=FILE");
}
