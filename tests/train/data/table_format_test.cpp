// The formats of data files, the tokens of their texts, and what is left out of a table.
#include "catch.h"
#include "forms.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/data/table/table.h"
#include "train/files/hash.h"
#include "train/files/temporary_directory.h"

using namespace thimble;
using rows::rows_with;
using rows::text;
using rows::Tokens;

TEST_CASE("columns are chosen by number or by the names in the header", "[data]") {
  const std::string three = "lemma\tform\ttags\ngo\twent\tV PST\nbe\tis\tV\n";
  CHECK(rows_with({.input = "lemma,tags", .target = "form"}, "t.tsv", three) == "go V PST = went\nbe V = is");
  CHECK(rows_with({.input = "0,2", .target = "1", .header = true}, "t.tsv", three) ==
        "go V PST = went\nbe V = is");
  CHECK(rows_with({.input = "2,0", .target = "1"}, "t.tsv", three) ==
        "tags lemma = form\nV PST go = went\nV be = is");
  CHECK(
      rows_with({.input = "lema", .target = "form"}, "t.tsv", three) ==
      ":1: task.input: no column lema, did you mean lemma?; there are lemma, form, tags; columns can be numbers, from 0, with task.header=true");
  CHECK(rows_with({.input = "0", .target = "3"}, "t.tsv", three) ==
        ":1: 3 columns; task.input and task.target need column 3, from 0");
  CHECK(rows_with({.input = "0,", .target = "1"}, "t.tsv", three) ==
        ": task.input is \"0,\"; give columns joined by commas");
}

TEST_CASE("a line is cut at the first separator", "[data]") {
  CHECK(rows_with({.separator = "OUT:"}, "t.txt", "IN: jump OUT: JUMP\nIN: run twice OUT: RUN RUN OUT:") ==
        "IN: jump = JUMP\nIN: run twice = RUN RUN OUT:");
  CHECK(rows_with({.separator = "  ", .input_tokens = Tokenization::characters}, "t.txt",
                  "AB'S  EY1 B\nA  AH0") == "A B ' S = EY1 B\nA = AH0");
  CHECK(rows_with({.input = "1", .target = "0", .separator = "|"}, "t.txt", "a | b | c") == "b | c = a");
  CHECK(
      rows_with({.separator = "|"}, "t.txt", "a b") ==
      ":1: 0 separators; a line must have 1, between input and target, unless task.input and task.target name columns");
  CHECK(rows_with({.separator = "|"}, "t.jsonl", "{}") ==
        ": task.separator and task.header have no effect on JSON Lines, CoNLL-U and conll; remove them");
}

TEST_CASE("comma-separated values follow RFC 4180, a record a line", "[data]") {
  CHECK(rows_with({}, "t.csv", "a b,c\r\n\"d, \"\"e\"\"\",f\n") == "a b = c\nd, \"e\" = f");
  CHECK(rows_with({.separator = ";"}, "t.csv", "\"a;b\";c") == "a;b = c");
  CHECK(rows_with({.separator = "\t"}, "t.csv", "\"a\"\t\"b\"") == "a = b");
  CHECK(rows_with({.input = "text", .target = "label"}, "t.csv", "id,text,label\n1,\"x,y\",z\n") ==
        "x,y = z");
  CHECK(
      rows_with({}, "t.csv", "a,b,c") ==
      ":1: 2 commas; a line must have 1, between input and target, unless task.input and task.target name columns");
  CHECK(rows_with({}, "t.csv", "\"a\"b,c") ==
        ":1: text after the end of a quoted field; quote all of the field, and double the quotes in it");
  CHECK(rows_with({.separator = "ab"}, "t.csv", "a") ==
        ": task.separator of a CSV file must be 1 byte, not 2; set task.format=tsv");
  // 0 to 4 fields of every kind, against the fields they were made of.
  const std::pair<const char*, const char*> kFields[] = {
      {"a", "a"}, {"\"b\"", "b"}, {"\"c,\"\"d\"", "c,\"d"}, {"e\"f", "e\"f"}, {"\"\"\"\"", "\""}};
  for (const auto& [first, plain_first] : kFields)
    for (const auto& [second, plain_second] : kFields)
      CHECK(rows_with({}, "t.csv", fmt::format("{},{}", first, second)) ==
            fmt::format("{} = {}", plain_first, plain_second));
}

TEST_CASE("keys of JSON Lines are named, and texts become tokens as the options say", "[data]") {
  CHECK(rows_with({.input = "question", .target = "answer"}, "t.jsonl",
                  R"({"id": 3, "question": "a b", "answer": ["x", null]})") == "a b = x -");
  CHECK(rows_with({.input = "a,b", .target = "c", .input_tokens = Tokenization::characters}, "t.jsonl",
                  R"({"a": "no", "b": "1", "c": 2})") == "n o 1 = 2");
  CHECK(rows_with({.input = "a", .target = "c"}, "t.jsonl", R"({"a": "no"})") ==
        R"(:1: missing key c; a line must be {"a": ..., "c": ...})");
  // In JSON, null marks a position without an answer, and no text does.
  CHECK(rows_with({}, "t.jsonl", R"({"input": "a", "target": "_ b"})") == "a = _ b");
}

TEST_CASE("sentences of CoNLL-U are rows with an answer per token", "[data]") {
  const auto token = [](const std::string& id, const std::string& form, const std::string& pos) {
    return id + "\t" + form + "\tl-" + form + "\t" + pos + "\tX\tA=1\t0\troot\t_\t_\n";
  };
  const std::string text = "# text = au lait\n" + token("1-2", "au", "_") + token("1", "\u00e0", "ADP") +
                           token("2", "le", "DET") + token("2.1", "x", "X") + token("3", "10 000", "NUM") +
                           "\n# second\n" + token("1", "Oui", "INTJ");
  CHECK(rows_with({}, "t.conllu", text) == "\u00e0 le 10_000 = ADP DET NUM\nOui = INTJ");
  CHECK(rows_with({}, "t.conllu", text + "\n\n") == "\u00e0 le 10_000 = ADP DET NUM\nOui = INTJ");
  CHECK(rows_with({.input = "lemma", .target = "upos,feats"}, "t.conllu", token("1", "Oui", "INTJ")) ==
        "l-Oui = INTJ|A=1");
  CHECK(rows_with({.input = "1", .target = "8"}, "t.conllu", token("1", "Oui", "INTJ")) ==
        ":1: target without an answer; at least 1 position must have one");
  CHECK(rows_with({}, "t.conllu", "1\tOui\n") ==
        ":1: 2 fields; a token of CoNLL-U has 10, separated by tabs");
  const Table table(
      {.main = {"t.conllu", text}, .validation = {{"t.conllu", text}}, .test = {{"t.conllu", text}}});
  CHECK(table.stored_where(0) == "t.conllu:3");
  CHECK(table.stored_where(1) == "t.conllu:9");
}

TEST_CASE("texts become spaces, characters or words", "[data]") {
  const auto cut = [](const std::string& text, Tokenization how) {
    std::string out;
    tokenize(text, how, [&](std::string_view token) { (out += '[') += std::string(token) + ']'; });
    return out;
  };
  CHECK(cut("  ab  c ", Tokenization::spaces) == "[ab][c]");
  CHECK(cut("a\u00e9 \u4e2d", Tokenization::characters) == "[a][\u00e9][ ][\u4e2d]");
  CHECK(cut("e\u0301", Tokenization::characters) == "[e][\u0301]");  // two code points
  CHECK(cut("Don't stop_it, 3.5\u00a0\u20ac\u2014\u00abna\u00efve\u00bb!", Tokenization::words) ==
        "[Don]['][t][stop_it][,][3][.][5][\u20ac][\u2014][\u00ab][na\u00efve][\u00bb][!]");
  CHECK(cut("", Tokenization::words).empty());
  CHECK(cut("", Tokenization::characters).empty());
  CHECK(rows_with({.input_tokens = Tokenization::characters, .target_tokens = Tokenization::words}, "t.tsv",
                  "a b\tone, two") == "a   b = one , two");
  CHECK(shown_token(" ") == "\u2423");
  CHECK(shown_token("\u2423") == "\\u{2423}");
  const std::vector<std::string> names{"a", "\u2423", "b"};
  CHECK(token_text(names, Tokens{0, 1, 2}, Tokenization::characters) == "a b");
  CHECK(token_text(names, Tokens{0, kIgnore, 2}) == "a . b");
}

TEST_CASE("the marker of positions without an answer can be a token", "[data]") {
  const std::string form = "rose\trose ( x _ 1 )";
  CHECK(rows_with({}, "t.tsv", form) == "rose = rose ( x - 1 )");
  CHECK(rows_with({.no_answer = ""}, "t.tsv", form) == "rose = rose ( x _ 1 )");
  CHECK(rows_with({}, "t.tsv", "_\t\\_ _ \\\\_ \\_x") == "_ = _ - \\\\_ \\_x");
  CHECK(rows_with({.no_answer = "-"}, "t.tsv", "a\t_ - \\-") == "a = _ - -");
  const Table table({.main = {"t.tsv", form}, .validation = {{"v.tsv", form}}, .test = {{"w.tsv", form}}});
  CHECK_THROWS_WITH(
      table.check(Layout::next),
      StartsWith(
          "t.tsv: 3 problems\nt.tsv:1: a position without an answer: one output per next token requires an answer at every position; if _ is a token here, set task.no_answer=\"\", or write \\_ for it"));
}

TEST_CASE("rare and unseen tokens become <unk>, and move no line", "[data]") {
  std::string text;
  for (int i = 0; i < 400; ++i) text += fmt::format("w{} x{}\tt{}\n", i, i % 30, i % 5);
  const Table all({.main = {"t.tsv", text}});
  CHECK(all.unknown() == kIgnore);
  CHECK(all.tokens().size() == 435);
  for (const TableOptions& options :
       {TableOptions{.min_count = 2}, TableOptions{.vocabulary = VocabularyOf::training},
        TableOptions{.vocabulary = VocabularyOf::training, .min_count = 1}}) {
    DataTexts texts{.main = {"t.tsv", text}};
    texts.options = options;
    const Table table(texts);
    CHECK(table.splits() == all.splits());
    for (std::int64_t row = 0; row < table.rows(); ++row) REQUIRE(table.stored_of(row) == all.stored_of(row));
    const auto expected = options.min_count == 1 ? static_cast<std::size_t>(all.splits()[0]) + 36 : 36U;
    CHECK(table.tokens().size() == expected);
    REQUIRE(table.unknown() != kIgnore);
    CHECK(table.tokens()[static_cast<std::size_t>(table.unknown())] == "<unk>");
    CHECK(std::ranges::is_sorted(table.tokens()));
    const std::string first = text.substr(0, 0) + ::text(table, table.stored_of(table.rows() - 1));
    CHECK_THAT(first, StartsWith("<unk> x"));  // a test line: its first token occurs once
  }
  // A token of that name in a file is the same token.
  DataTexts texts{.main = {"t.tsv", text + "<unk> w7\tt1\n"}};
  texts.options.min_count = 2;
  CHECK(Table(texts).tokens().size() == 37);
}

TEST_CASE("longer lines are left out, with their tokens", "[data]") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += fmt::format("a{}\tb\n", i % 50);
  DataTexts texts{.main = {"t.tsv", text + "c d e\tb\nf\tb b b b\n"}};
  texts.options.max_tokens = 2;
  const Table table(texts);
  CHECK(table.rows() == 100);
  CHECK(table.counts().too_long == 2);
  CHECK(table.longest().input == 1);
  CHECK(table.tokens() == Table({.main = {"t.tsv", text}}).tokens());
}

TEST_CASE("files are read in pieces: lines, sizes and hashes are those of the whole", "[data]") {
  const TemporaryDirectory directory;
  std::string text = "\xef\xbb\xbf";  // longer than two pieces, with lines across their borders
  for (int i = 0; text.size() < (5 << 19); ++i)
    text += fmt::format("w{} {}\tt{}\r\n", i, std::string(i % 99, 'x'), i % 7);
  write_file(directory / "t.tsv", text);
  TaskConfig config{.name = "file"};
  config.file = (directory / "t.tsv").string();
  const Table from_file(open_files(config, nullptr)), from_text({.main = {config.file, text}});
  CHECK(from_file.tokens() == from_text.tokens());
  REQUIRE(from_file.rows() == from_text.rows());
  for (std::int64_t row = 0; row < from_file.rows(); ++row)
    REQUIRE(::text(from_file, from_file.stored_of(row)) == ::text(from_text, from_text.stored_of(row)));
  CHECK(from_file.files()[0].bytes == text.size());
  CHECK(from_file.files()[0].hash == hash_digits(text));
  CHECK(from_text.files()[0].hash == hash_digits(text));
}
