// Data files as people have them: line breaks in fields, tagged tokens, labels of several words, empty fields.
#include "catch.h"
#include "corpora.h"
#include "forms.h"
#include "train/data/table/table.h"

using namespace thimble;
using rows::rows_with;
using rows::table_with;
using rows::text;

namespace {

// Returns the whole message of a file that is refused.
std::string refusal(const TableOptions& options, const std::string& name, const std::string& content) {
  try {
    const Table table({.main = {name, content},
                       .validation = {{"v.tsv", "v\tv"}},
                       .test = {{"w.tsv", "w\tw"}},
                       .options = options});
    return "accepted";
  } catch (const DataError& e) {
    return e.what();
  }
}

// Returns a sentence of CoNLL-U with these ids, each after a line break.
std::string with_ids(const std::vector<std::string>& ids) {
  std::string text;
  for (const std::string& id : ids) text += id.empty() ? "\n" : id + "\tw\tl\tX\t_\t_\t_\t_\t_\t_\n";
  return text;
}

}  // namespace

TEST_CASE("tabs and line breaks in a field separate words, and are tokens of characters", "[data]") {
  const std::string json = R"({"input": "the\tcat\r\n sat.", "target": "a\nb"})";
  CHECK(rows_with({}, "t.jsonl", json) == "the cat sat. = a b");
  CHECK(rows_with({.input_tokens = Tokenization::words}, "t.jsonl", json) == "the cat sat . = a b");
  CHECK(rows_with({.input_tokens = Tokenization::characters}, "t.jsonl",
                  R"({"input": "a\tb\r\n", "target": "x"})") == "a \t b \r \n = x");
  CHECK(rows_with({}, "t.tsv", "a\rb\tc\nd\te") == "a b = c\nd = e");
  CHECK(rows_with({}, "t.jsonl", R"({"input": "a\u001bb", "target": "x"})") ==
        ":1: control character in token a\\u{1b}b");
  CHECK(shown_token("a b\nc\td\re") == "a␣b⏎c⇥d␍e");
  CHECK(shown_token("a␣⏎") == "a\\u{2423}\\u{23CE}");
}

TEST_CASE("line breaks within quotes are part of a CSV field, and rows have the number of their first line",
          "[data]") {
  const std::string text = "\"a\r\nb\",c\r\n\"d \"\"q\"\"\n\n \n\"\"e\"\"\",f\n\"\n\",\"g\n\"\n";
  CHECK(rows_with({}, "t.csv", text.substr(0, text.size() - 10)) == "a b = c\nd \"q\" \"e\" = f");
  CHECK(rows_with({.input_tokens = Tokenization::characters}, "t.csv", "\"a\r\n\nb\",c") == "a \n \n b = c");
  CHECK(rows_with({}, "t.csv", text) == ":7: empty input; leave out such lines with task.skip_empty=true");
  CHECK(rows_with({.input = "a b", .target = "c"}, "t.csv", "\"x\ny\",a b,c\n1,2,3\n") == "2 = 3");
  CHECK(rows_with({.input = "0", .target = "1", .header = true}, "t.csv", "\"x\ny\",c\n1,2\n") == "1 = 2");
  const Table table = table_with({}, "t.csv", "a,\"b\n\nc\"\nd,e\n");
  CHECK(table.stored_where(0) == "t.csv:1");
  CHECK(table.stored_where(1) == "t.csv:4");
  CHECK(rows_with({}, "t.csv", "a,b\n\nc,d") == ":2: blank line; delete it");
  CHECK(rows_with({}, "t.csv", "a,b\n\"c\nd\"e,f\n") ==
        ":2: text after the end of a quoted field; quote all of the field, and double the quotes in it");
}

TEST_CASE("a quoted field that never ends is one problem, of its first line", "[data]") {
  CHECK(
      refusal({}, "t.csv", "a,b\n\"c,d\ne,f\n\ng,h\n") ==
      "t.csv: 1 problem\nt.csv:2: a quoted field does not end; add the closing quote, or double quotes in it");
  std::string text = "a,b\n\"";
  for (int i = 0; i < 300'000; ++i) text += "c,d\n";
  CHECK(refusal({}, "t.csv", text) ==
        "t.csv: 1 problem\nt.csv:2: a quoted field does not end within 1048576 bytes; add the closing quote");
}

TEST_CASE("columns with blank lines between sentences are rows with an answer per token", "[data]") {
  const std::string text =
      "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG  \r\n# VB I-VP O\t\n \t\n\nPeter NNP B-NP B-PER\n-DOCSTART- x\nx y z O";
  const std::string all = "EU # = B-ORG O\nPeter = B-PER\nx = O";
  CHECK(rows_with({.format = TableFormat::conll}, "t.txt", text) == all);
  for (const char* name : {"t.conll", "t.bio", "t.iob"}) CHECK(rows_with({}, name, text) == all);
  CHECK(rows_with({.target = "1"}, "t.conll", text) == "EU # = NNP VB\nPeter = NNP\nx = y");
  CHECK(rows_with({.input = "0,1", .target = "2,3"}, "t.conll", "a b c d\n") == "a|b = c|d");
  CHECK(rows_with({}, "t.conll", "10 000\tNUM\na\t_\n\n") == "10 000 a = NUM -");  // at tabs if there are any
  CHECK(table_with({}, "t.conll", text).stored_where(1) == "t.conll:7");
  CHECK(rows_with({}, "t.conll", "a X\nb\n") ==
        ":2: 1 column; a token has at least 2, its answer in the last");
  CHECK(
      rows_with({}, "t.conll", "a X\nb Y Z\n") ==
      ":2: 3 columns; the first token has 2; delete its line if it is none, or set task.target to the column of the answers");
  CHECK(rows_with({.target = "1"}, "t.conll", "a X\nb Y Z\n") == "a b = X Y");
  CHECK(rows_with({.target = "2"}, "t.conll", "a X\n") == ":1: 2 columns; a token has column 2, from 0");
  CHECK(rows_with({.input = "word"}, "t.conll", "a X\n") ==
        ": task.input and task.target: columns of conll have numbers, from 0");
  CHECK(table_with({}, "t.conll", "a X\n\nb Y\n\nc X\n").remarks().at(0).find("header") == std::string::npos);
}

TEST_CASE("a file of pairs that resembles sentences in columns is told the format", "[data]") {
  const std::string rule =
      " with blank lines between them, as of sentences whose tokens have tags; lines of pairs have no blank lines between them; set task.format=conll";
  std::string spaces, tabs, pairs, double_spaced;
  for (int i = 0; i < 5; ++i) {
    spaces += fmt::format("a{} B-PER\nruns O\n\n", i);
    tabs += fmt::format("a{}\tX\tB-PER\nruns\tY\tO\n\n", i);
    pairs += fmt::format("a {}\tb\nc\td\n\n", i);
    double_spaced += fmt::format("a{}\tb\n\n", i);
  }
  CHECK(refusal({}, "t.txt", spaces) == "t.txt: 1 problem\nt.txt: lines of 2 columns" + rule);
  CHECK(refusal({}, "t.tsv", "-DOCSTART-\n\n" + tabs) ==
        "t.tsv: 1 problem\nt.tsv: lines of 3 columns" + rule);
  CHECK(refusal({}, "t.tsv", pairs).find(":3: blank line; delete it") != std::string::npos);
  CHECK(refusal({}, "t.tsv", double_spaced).find(":2: blank line; delete it") != std::string::npos);
}

TEST_CASE("ids of CoNLL-U are 1, 2, 3, with ranges and empty nodes", "[data]") {
  CHECK(rows_with({}, "t.conllu", with_ids({"0.1", "1-2", "1", "2", "2.1", "2.2", "3", "", "1"})) ==
        "w w w = X X X\nw = X");
  const auto rule = [](const std::string& id, int due) {
    return fmt::format(
        "{} where {} is due; ids of a sentence are 1, 2, 3, ..., with 1-2 before 1, in which no other range begins, and 1.1, 1.2 after it; a blank line ends it: restore the lines that are missing",
        id, due);
  };
  CHECK(rows_with({}, "t.conllu", with_ids({"3", "4"})) == ":1: " + rule("id 3", 1));
  CHECK(rows_with({}, "t.conllu", with_ids({"1", "2", "1", "2"})) == ":3: " + rule("id 1", 3));
  CHECK(rows_with({}, "t.conllu", with_ids({"1", "3-4", "2"})) == ":2: " + rule("id 3-4", 2));
  CHECK(rows_with({}, "t.conllu", with_ids({"1", "2.1", "2"})) == ":2: " + rule("id 2.1", 2));
  CHECK(rows_with({}, "t.conllu", with_ids({"1", "2-1", "2"})) == ":2: " + rule("id 2-1", 2));
  CHECK(rows_with({}, "t.conllu", with_ids({"1", "2-3", "2", "3-4", "3", "4"})) ==
        ":4: " + rule("id 3-4", 3));
  CHECK(rows_with({}, "t.conllu", with_ids({"1", "2-3", "2"})) == ":1: " + rule("end of the sentence", 3));
  CHECK(rows_with({}, "t.conllu", with_ids({"1", "1.2", "1.1"})) == ":2: " + rule("id 1.2", 2));
  CHECK(rows_with({}, "t.conllu", with_ids({"1", "1.1", "1.1"})) == ":3: " + rule("id 1.1", 2));
  CHECK(rows_with({}, "t.conllu", with_ids({"01"})) == ":1: " + rule("id 01", 1));
  CHECK(rows_with({}, "t.conllu", with_ids({"1", "1-2", "2"})) == ":2: " + rule("id 1-2", 2));
  CHECK(rows_with({}, "t.conllu", with_ids({"x"})) == ":1: " + rule("id x", 1));
  CHECK(refusal({}, "t.conllu", with_ids({"1", "", "5", "6", "7", "", "1", "2"})) ==
        "t.conllu: 1 problem\nt.conllu:3: " + rule("id 5", 1));  // one, not one for every line
}

TEST_CASE("a whole field can be a token, and a blank in it is shown and typed as ␣", "[data]") {
  const TableOptions options{.target_tokens = Tokenization::field};
  const Table table = table_with(options, "t.tsv", "a b\t not spam \nc\tspam\nd\t\\_");
  CHECK(text(table, 0) == "a b = not spam");
  CHECK(table.target(0).size() == 1);
  CHECK(text(table, 2) == "d = _");
  CHECK(
      table_with({.input = "0", .target = "1,2", .target_tokens = Tokenization::field}, "t.tsv", "a\tb c\td")
          .target(0)
          .size() == 2);
  CHECK(table_with({.input = "0,1", .target = "2", .input_tokens = Tokenization::field}, "t.tsv", "a b\tc\td")
            .input(0)
            .size() == 2);
  const std::vector<std::string> names{"not␣spam", "spam"};
  CHECK(token_text(names, rows::Tokens{0, 1}, Tokenization::field) == "not␣spam spam");
}

TEST_CASE("labels of several words name the key that keeps them whole", "[data]") {
  const auto problem = [](const std::string& name, const std::string& content) {
    try {
      table_with({}, name, content).check(Layout::sequence);
    } catch (const DataError& e) {
      const std::string message = e.what();
      return message.substr(0, message.find(" (and ")).substr(message.find("requires"));
    }
    return std::string("accepted");
  };
  const std::string next = "set model.output.per=next model.attention.mask=causal",
                    field = "; if a field is one label, set task.target_tokens=field; else ";
  CHECK(problem("t.tsv", "a\tnot spam\nb\tspam") == "requires exactly 1" + field + next);
  CHECK(problem("t.jsonl", R"({"input": "a", "target": "not spam"})") == "requires exactly 1" + field + next);
  CHECK(problem("t.jsonl", R"({"input": "a", "target": ["not", "spam"]})") == "requires exactly 1; " + next);
  CHECK(problem("t.tsv", "a\tspam") == "accepted");
}

TEST_CASE("JSON: true and false are tokens, keys reach into objects, elements may hold blanks", "[data]") {
  const auto json = [](const std::string& input, const std::string& target, const std::string& line) {
    return rows_with({.input = input, .target = target}, "t.jsonl", line);
  };
  CHECK(json("text", "label", R"({"text": "a", "label": true})") == "a = true");
  CHECK(json("text", "label", R"({"text": [false, "New York"], "label": ["x y", null]})") ==
        "false New York = x y -");
  CHECK(json("t.en", "t.fr", R"({"t": {"en": "a b", "fr": "c", "de": 1}})") == "a b = c");
  CHECK(json("t.en", "b", R"({"t": {"en": "inner"}, "t.en": "whole", "b": 1})") == "whole = 1");
  CHECK(json("a.b.c", "a.d.e", R"({"a.b": {"c": 1}, "a": {"b": 2, "d": {"e": 3}}})") == "1 = 3");
  CHECK(json("t.en", "t.de", R"({"t": {"en": "a"}})") ==
        R"(:1: missing key t.de; a line must be {"t.en": ..., "t.de": ...})");
  for (const char* key : {".t", "t.", "t..en", "."})
    CHECK(json(key, "t.en", R"({"t": {"en": "a"}})").starts_with(fmt::format(":1: missing key {};", key)));
  CHECK(json("t.en.x", "t.en", R"({"t": {"en": "a"}})").starts_with(":1: missing key t.en.x;"));
  CHECK(json("t", "t.en", R"({"t": {"en": "a"}})") == ":1: t is an object; name a key of it, such as t.en");
  CHECK(
      json("t", "u", R"({"t": [null], "u": "b"})") ==
      ":1: null in the input; only targets can have positions without an answer: write a token, or null for all of the field and set task.skip_empty=true");
  for (const char* value : {"1.5", "{}", "[[1]]", "[{}]", "[1.5]"})
    CHECK(json("t", "u", fmt::format(R"({{"t": {}, "u": "b"}})", value)) ==
          ":1: t must be a text, an integer of 64 bits, true or false, or a list of these");
}

TEST_CASE("input columns can have tokens of their own", "[data]") {
  const TableOptions options{
      .input = "0,2", .target = "1", .input_tokens = ColumnTokens("characters,spaces")};
  CHECK(rows_with(options, "t.tsv", "go on\twent\tV PST") == "g o   o n V PST = went");
  CHECK(rows_with({.input = "0,1", .target = "1", .input_tokens = ColumnTokens("characters,characters")},
                  "t.tsv", "ab\tcd") == "a b c d = cd");  // one text of them has a blank between the columns
  CHECK(rows_with({.input = "a,b", .target = "b", .input_tokens = ColumnTokens("field,words")}, "t.jsonl",
                  R"({"a": "x y", "b": "c,d"})") == "x y c , d = c,d");
  CHECK(rows_with({.input = "0", .target = "1", .input_tokens = ColumnTokens("characters,spaces")}, "t.tsv",
                  "a\tb") ==
        ": task.input_tokens names 2 ways for 1 column; name one, or one for each column of task.input");
  CHECK(std::string(options.input_tokens) == "characters,spaces");
  CHECK(options.input_tokens.joined() == Tokenization::spaces);
}

TEST_CASE("empty fields are refused with their lines, or left out", "[data]") {
  const std::string text = "a,x,\n,y,1\nb,,2\nc,z,3\n , ,4\n";
  CHECK(
      refusal({}, "t.csv", "a,\nc, \ne,f\ng,\ni,\nk,\n") ==
      "t.csv: 5 problems\nt.csv:1: empty target; leave out such lines with task.skip_empty=true (and 4 more lines like it: 2, 4, 5, ...)");
  const TableOptions skip{.input = "0,1", .target = "2", .skip_empty = true};
  CHECK(rows_with(skip, "t.csv", text) == "c z = 3");  // every column that is named has a text
  CHECK(rows_with({.input = "0,1", .target = "2"}, "t.csv", text).starts_with(":1: empty target;"));
  const Table table = table_with({.input = "0", .target = "2", .skip_empty = true}, "t.csv", text);
  CHECK(table.counts().empty == 9);  // 3 of each file
  CHECK(std::ranges::count(table.remarks(), "9 lines with an empty field are left out") == 1);
  for (const char* empty : {"\"\"", "\" \"", "null", "[]"}) {
    const std::string lines =
        fmt::format("{{\"input\": {0}, \"target\": 1}}\n{{\"input\": 1, \"target\": {0}}}\n", empty) +
        R"({"input": "a", "target": "b"})";
    CHECK(rows_with({.skip_empty = true}, "t.jsonl", lines) == "a = b");
    CHECK(rows_with({}, "t.jsonl", lines) ==
          ":1: empty input; leave out such lines with task.skip_empty=true");
  }
}

TEST_CASE("a row with more fields than the header is refused", "[data]") {
  const std::string rows = "great,pos\ngreat, really great,pos\n";
  const std::string rule =
      ":3: 3 columns; the header has 2; remove the commas that are too many, or quote fields that have them, from their first character on";
  CHECK(rows_with({.input = "text", .target = "label"}, "t.csv", "text,label\n" + rows) == rule);
  CHECK(rows_with({.input = "0", .target = "1", .header = true}, "t.csv", "text,label\n" + rows) == rule);
  CHECK(rows_with({.input = "a", .target = "b"}, "t.tsv", "a\tb\nc\td\te\n") ==
        ":2: 3 columns; the header has 2; remove the tabs that are too many");
  CHECK(rows_with({.input = "a", .target = "b"}, "t.tsv", "a\tb\tc\nc\td\n") ==
        "c = d");  // one too few is not needed
  CHECK(rows_with({.header = true, .separator = "="}, "t.txt", "# pairs\na = b = c\n") == "a = b = c");
  CHECK(
      rows_with({}, "t.tsv", "\"a\tb\"\tc") ==
      ":1: 2 tabs; a line must have 1, between input and target, unless task.input and task.target name columns; if quotes enclose fields, set task.format=csv task.separator='\"\\t\"'");
}

TEST_CASE("lines that end in CR alone name the command that converts them", "[data][text]") {
  const std::string rule = ": its lines end in CR alone; convert it: tr '\\r' '\\n' < ";
  for (const char* name : {"t.tsv", "t.csv", "t.jsonl", "t.conll", "t.conllu"})
    for (const char* end : {"", "\r", "\n"})
      CHECK(refusal({}, name, std::string("a\tb\rc\td") + end) ==
            fmt::format("{0}: 1 problem\n{0}{1}{0} > NEW", name, rule));
  for (const TextOptions& options : {kTextLines, kTextStream})
    CHECK(text_problem("anna\rbob\r", options) == "t.txt: 1 problem\nt.txt" + rule + "t.txt > NEW");
  CHECK(text_problem("anna\rb\nbob\n", kTextLines).find("CR") == std::string::npos);
  CHECK(rows_with({}, "t.tsv", "a\tb\r\n") == "a = b");
}

TEST_CASE("tokens of a text that look alike are pointed out", "[data][text]") {
  TextOptions options = kTextLines;
  options.tokens = Tokenization::words;
  const std::vector<std::string> remarks = given_text("caf\u00e9\ncafe\u0301\nx\n", options, 8).remarks();
  CHECK(std::ranges::count(
            remarks, "tokens cafe\\u{301} and caf\\u{e9} look the same; write such tokens in one way") == 1);
}
