// Texts as rows of a language model.
#include <algorithm>
#include <map>
#include <set>

#include "catch.h"
#include "corpora.h"
#include "small_rows.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "thimble/train/tokenization.h"
#include "train/files/temporary_directory.h"
#include "train/files/text/text.h"

using namespace thimble;

TEST_CASE("a document stands between boundaries, and every token but the first is predicted",
          "[data][text]") {
  const Corpus text = given_text("ab\n\nb a\r\n", kTextLines, 8);
  CHECK(text.tokens() == std::vector<std::string>{"\n", " ", "a", "b"});
  CHECK(text.splits() == std::array<std::int64_t, 3>{2, 1, 1});
  const std::set<std::string> training{shown_row(text, 0), shown_row(text, 1)};
  CHECK(training == std::set<std::string>{"⏎ab>ab⏎", "⏎b␣a>b␣a⏎"});
  CHECK(shown_row(text, 2) == "⏎ab>ab⏎");
  CHECK(shown_row(text, 3) == "⏎ba>ba⏎");
  CHECK(text.longest().input == 8);
  CHECK(text.starts() == 0);
  for (std::int64_t row = 0; row < 2; ++row)  // line 2 is blank
    CHECK(text.where(row) == (shown_row(text, row) == "⏎ab>ab⏎" ? "t.txt:1" : "t.txt:3"));
  CHECK(text.remarks() ==
        std::vector<std::string>{
            "t.txt: 1 blank line left out; if they separate documents, set task.documents=paragraphs"});
  // Of 13 answers 4 are boundaries, 4 a, 4 b and one is a space.
  CHECK(text.chance() == Catch::Approx(4 / 13.0));
}

TEST_CASE("a long document is cut into windows that follow one another, or loses its end", "[data][text]") {
  TextOptions options = kTextLines;
  const Corpus several = given_text("abababa\n", options, 3);
  CHECK(several.splits()[0] == 3);
  CHECK(shown_row(several, 0) == "⏎ab>aba");
  CHECK(shown_row(several, 1) == "aba>bab");
  CHECK(shown_row(several, 2) == "ba>a⏎");
  CHECK(several.where(2) == "t.txt:1");
  CHECK(several.where(3) == "v.txt:1");
  CHECK_FALSE(several.disjoint());
  CHECK(
      several.remarks().back() ==
      "1 of 3 documents have more than task.length=3 tokens with the boundary at their end: they become several windows, 5 rows in all; task.long=cut leaves the rest out");
  CHECK(given_text("ab\n", options, 3).remarks().empty());       // 3 tokens with the boundary
  CHECK(given_text("aba\n", options, 3).remarks().size() == 1);  // 4 tokens
  CHECK_FALSE(Corpus({.main = {"t.txt", lines_of_words(400)}}, options, 3).disjoint());
  options.longer = LongDocuments::first;
  const Corpus cut = given_text("abababa\n", options, 3);
  CHECK(cut.splits()[0] == 1);
  CHECK(shown_row(cut, 0) == "⏎ab>aba");
  CHECK(cut.chance() == Catch::Approx(4 / 9.0));                             // 4 a, 3 b and 2 boundaries
  CHECK(std::ranges::count(cut.training_tokens(100), cut.boundary()) == 1);  // its end was cut
  CHECK(shown_row(given_text("ab\n", options, 3), 0) == "⏎ab>ab⏎");
}

TEST_CASE("documents are divided by their text, whatever the others are", "[data][text]") {
  const std::string text = lines_of_words(400);
  const Corpus once({.main = {"t.txt", text}}, kTextLines, 8),
      twice({.main = {"t.txt", "new\n" + text + text}}, kTextLines, 8);
  CHECK(once.disjoint());
  std::vector<std::string> first;
  for (std::int64_t row = 0; row < 20; ++row) first.push_back(once.where(row));
  CHECK_FALSE(
      std::ranges::is_sorted(first, {}, [](const std::string& where) { return std::stoi(where.substr(6)); }));
  std::map<std::string, std::size_t> split_of;
  const auto split = [](const Corpus& of, std::int64_t row) {
    return row < of.splits()[0] ? 0U : row < of.splits()[0] + of.splits()[1] ? 1U : 2U;
  };
  for (std::int64_t row = 0; row < once.rows(); ++row) split_of[shown_row(once, row)] = split(once, row);
  CHECK(split_of.size() == 400);
  CHECK(twice.rows() == 801);
  std::int64_t differ = 0;
  for (std::int64_t row = 0; row < twice.rows(); ++row) {
    const std::string document = shown_row(twice, row);
    if (split_of.contains(document)) differ += split_of[document] == split(twice, row) ? 0 : 1;
  }
  CHECK(differ == 0);
  for (const std::int64_t n : once.splits()) CHECK(n > 20);
}

TEST_CASE("tokens are characters, words, bytes, or what is between spaces", "[data][text]") {
  TextOptions options = kTextStream;
  const auto tokens = [&](const std::string& text, Tokenization how) {
    options.tokens = how;
    const Corpus stream({.main = {"t.txt", text}, .validation = {{"v.txt", text}}, .test = {{"w.txt", text}}},
                        options, 2);
    Example e;
    std::string out;
    for (std::int64_t row = 0; row < stream.splits()[0]; ++row) {
      stream.example(row, e);
      for (const std::int32_t id : e.target)
        out += shown_token(stream.tokens()[static_cast<std::size_t>(id)]) + "|";
    }
    return out;
  };
  CHECK(tokens("aé b\r\nc", Tokenization::characters) == "é|␣|b|␍|⏎|c|");
  CHECK(tokens("aé b\r\nc", Tokenization::bytes) == "\\xc3|\\xa9|␣|b|␍|⏎|c|");
  CHECK(tokens("It's so,  a\r\nb", Tokenization::words) == "'|s|so|,|a|⏎|b|");
  CHECK(tokens("It's so,  a\nb\n", Tokenization::spaces) == "so,|a|⏎|b|⏎|");
  CHECK(tokens("\xEF\xBB\xBF"
               "abc",
               Tokenization::characters) == "b|c|");
  CHECK(tokens("\xEF\xBB\xBF"
               "abc",
               Tokenization::bytes) == "\\xbb|\\xbf|a|b|c|");
}

TEST_CASE("a byte, a character and a word of a text come back as they were", "[data][text]") {
  const auto back = [](const std::string& text, Tokenization how) {
    std::vector<std::string> names;
    std::vector<std::int32_t> ids;
    tokenize(text, how, [&](std::string_view token) {
      names.push_back(shown_token(token));
      ids.push_back(static_cast<std::int32_t>(ids.size()));
    });
    return token_text(names, ids, how);
  };
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  CHECK(back(bytes, Tokenization::bytes) == valid_utf8(bytes));
  for (const std::string text : {"a \xe2\x90\xa3\t\n\r", "\xe2\x8f\x8e\xe2\x87\xa5\xe2\x90\x8d", "\\x41"})
    for (const Tokenization how : {Tokenization::characters, Tokenization::bytes})
      CHECK(back(text, how) == text);
  CHECK(token_text({"a", "⏎", "b"}, std::vector<std::int32_t>{0, 0, 1, 2, 1, 1}, Tokenization::words) ==
        "a a\nb\n\n");
}

TEST_CASE("a text has remarks on equal documents, and on tokens at the ends of lines", "[data][text]") {
  const auto first = [](const std::string& text, TextOptions options) {
    return given_text(text, options, 4).remarks().at(0);
  };
  TextOptions stream = kTextStream;
  CHECK(first("ab\nba\n\nab\nab\n", kTextLines) ==
        "t.txt:4: same text as in t.txt:1 (and 1 more); duplicates weigh as often as they occur");
  CHECK(first("ab\nab\n", kTextLines) ==
        "t.txt:2: same text as in t.txt:1; duplicates weigh as often as they occur");
  CHECK(
      first("ab \nba\t\na b\n", kTextLines) ==
      "t.txt: 2 lines end in blanks (␣, ⇥), which are tokens; to remove them: sed 's/[[:space:]]*$//' <t.txt >NEW");
  CHECK(
      first("ab \nba\n  \nabb \n", stream) ==
      "t.txt: 3 lines end in blanks (␣, ⇥), which are tokens; to remove them: sed 's/[[:space:]]*$//' <t.txt >NEW");
  CHECK(first("ab\r\nba\r\n", stream) ==
        "t.txt: 2 carriage returns (␍) are tokens; to remove them: tr -d '\\r' <t.txt >NEW");
  CHECK(given_text("ab\nba\n", stream, 2).remarks().empty());
  stream.tokens = Tokenization::spaces;
  CHECK(given_text("ab \nba \r\nab ba", stream, 2).remarks().empty());  // no token
}

TEST_CASE("rare tokens of a text, and those of other splits, are <unk>", "[data][text]") {
  TableOptions rare;
  rare.min_count = 2;
  CHECK(given_text("aab\nc\n", kTextLines, 8, rare).tokens() ==
        std::vector<std::string>{"\n", "<unk>", "a", "b"});
  TableOptions training;
  training.vocabulary = VocabularyOf::training;
  training.min_count = 1;
  const Corpus text = given_text("aac\n", kTextLines, 8, training);
  CHECK(text.tokens() == std::vector<std::string>{"\n", "<unk>", "a", "c"});
  CHECK(shown_row(text, 1) == "⏎a<unk>>a<unk>⏎");
  CHECK(
      text.remarks().back() ==
      "33 % of the tokens of validation and test (2 of 6) are <unk>, for which no prediction is counted right");
  TextOptions options = kTextStream;
  options.tokens = Tokenization::spaces;
  options.split = "0.5,0.5";
  const Corpus unk({.main = {"t.txt", "b b <unk> <unk> b c <unk> b"}, .options = rare}, options, 2);
  CHECK(unk.tokens() == std::vector<std::string>{"<unk>", "b"});
  CHECK(shown_row(unk, 0) == "bb>b<unk>");
  CHECK(shown_row(unk, unk.splits()[0]) == "b<unk>><unk><unk>");
  options.tokens = Tokenization::characters;
  const Corpus stream({.main = {"t.txt", "aaaaabbbbb"}, .options = training}, options, 2);
  CHECK(stream.tokens() == std::vector<std::string>{"<unk>", "a"});
}

TEST_CASE("a trained model's text keeps its ids", "[data][text]") {
  const DataRecord trained{.vocabulary = {"b", "\n", "a"}, .longest = {8, 8}, .length = 8};
  const DataTexts texts{
      .main = {"t.txt", "ab\n"}, .validation = {{"v.txt", "b\n"}}, .test = {{"w.txt", "abc\n"}}};
  const Corpus text(texts, kTextLines, 8, &trained);
  CHECK(text.tokens() == trained.vocabulary);
  CHECK(text.boundary() == 1);
  CHECK(text.splits() == std::array<std::int64_t, 3>{1, 1, 0});
  CHECK_NOTHROW(text.require_rows(Split::validation));
  CHECK_THROWS_WITH(
      text.require_rows(Split::test),
      StartsWith(
          "w.txt: 1 problem\nw.txt:1: token c is not in the vocabulary that the model was trained with"));
}

TEST_CASE("a bad text gets its place, the rule and a remedy", "[data][text]") {
  CHECK_THAT(text_problem("", kTextLines), ContainsSubstring("the file is empty"));
  CHECK_THAT(text_problem("\n \n", kTextLines), ContainsSubstring("the file is empty"));
  CHECK_THAT(text_problem("ab\na\xff\n", kTextLines),
             ContainsSubstring("t.txt:2: invalid UTF-8 at byte 2 of the line"));
  CHECK_THAT(text_problem("ab\na\xed\xa0\x80\n", kTextStream),
             ContainsSubstring("t.txt:2: invalid UTF-8"));  // a surrogate
  CHECK_THAT(text_problem(std::string("ab\na\0b\n", 7), kTextStream),
             ContainsSubstring("t.txt:2: NUL byte at byte 2"));
  CHECK_THAT(text_problem("\xFF\xFE"
                          "a",
                          kTextStream),
             ContainsSubstring("UTF-16; convert it"));
  CHECK_THAT(text_problem("ab\n", kTextLines), ContainsSubstring("none of the 1 documents is in the"));
  CHECK_THAT(text_problem(std::string(3 << 20, 'a') + "\n" + lines_of_words(400), kTextLines),
             ContainsSubstring("line of 3145728 bytes; the maximum is 1048576; set task.documents=stream"));
  CHECK_THAT(text_problem("abcde", kTextStream),
             ContainsSubstring("the train split has 4 tokens, and needs 5; add text, or lower task.length"));
  CHECK_THAT(text_problem(std::string(20, 'a'), kTextStream, 14),
             ContainsSubstring("the train split has 16 tokens") || ContainsSubstring("none"));
  CHECK_THAT(text_problem(std::string(12, 'a'), kTextStream, 4),
             ContainsSubstring("the validation split has 1 token, and needs 2"));
  TextOptions options = kTextStream;
  for (const char* split : {"1", "0.5,0.6", "0.5,-0.5,1", "a,b", "0.4,0.3,0.2,0.1", ","}) {
    options.split = split;
    CHECK_THAT(text_problem(lines_of_words(400), options),
               StartsWith("task.split is \"" + std::string(split)));
  }
  options = kTextLines;
  options.split = "0.9,0.1";
  CHECK_THAT(text_problem(lines_of_words(400), options), StartsWith("task.split has no effect"));
  options = kTextStream;
  options.longer = LongDocuments::first;
  CHECK_THAT(text_problem(lines_of_words(400), options), StartsWith("task.long has no effect"));
  options = kTextLines;
  options.tokens = Tokenization::words;
  CHECK_THAT(text_problem("a\x01"
                          "b\n" +
                              lines_of_words(400),
                          options),
             ContainsSubstring("control character in token"));
  CHECK_THROWS_WITH(given_text("ab\n", kTextLines, 8).check(Layout::next),
                    ContainsSubstring("set model.output.per=position model.attention.mask=causal"));
}

TEST_CASE("a line of many megabytes is a stream like any other", "[data][text][slow]") {
  std::string text;
  for (int i = 0; i < 900'000; ++i) text += fmt::format("{} ", i % 1000);
  REQUIRE(text.size() > std::size_t{3} << 20);
  for (const std::string end : {"", "\n"}) {
    TextOptions options = kTextStream;
    options.tokens = Tokenization::words;
    const Corpus stream({.main = {"t.txt", text + end}}, options, 16);
    CHECK(stream.token_count() == 900'000 + std::ssize(end));
    CHECK(stream.tokens().size() == 1000 + end.size());
  }
  std::string spelled;
  for (int i = 0; i < 700'000; ++i) spelled += "é—";  // without spaces: cut between characters
  const Corpus stream({.main = {"t.txt", spelled}}, kTextStream, 16);
  CHECK(stream.token_count() == 1'400'000);
  CHECK(stream.tokens().size() == 2);
}

TEST_CASE("a text that changes while it is read is refused", "[data][text]") {
  const TemporaryDirectory directory;
  write_file(directory / "t.txt", lines_of_words(400));
  TaskConfig config{.name = "text", .file = directory / "t.txt"};
  CHECK_NOTHROW(file_source(config, Layout::position));
  DataTexts texts = open_files(config, nullptr);
  texts.validation = DataText{.name = "v.txt", .text = "ab\n"};
  write_file(directory / "t.txt", lines_of_words(401));  // another file; the open one is as it was
  CHECK_NOTHROW(Corpus(texts, kTextLines, 8));
}

TEST_CASE("the tokens for counting are whole training documents", "[data][text]") {
  const Corpus text = given_text("ab\nb\n", kTextLines, 8);
  const std::vector<std::int32_t> tokens = text.training_tokens(100);
  CHECK(std::ranges::count(tokens, kIgnore) == 3);
  CHECK(std::ranges::count(tokens, 0) == 4);  // two boundaries of each
  CHECK(tokens.size() == 10);
  CHECK(text.training_tokens(5).size() < 7);
  TextOptions options = kTextStream;
  options.split = "0.5,0.5";
  const Corpus stream({.main = {"t.txt", "abababababab"}}, options, 2);
  CHECK(stream.training_tokens(100).size() == 7);
  CHECK(stream.training_tokens(3) == std::vector<std::int32_t>{kIgnore, 0, 1, 0});
}

TEST_CASE("varied texts repeat random tokens, so that position and content part", "[data][text]") {
  const Dataset data(rows::usual("text"), {.train = kAll, .validation = kAll, .test = kAll}, Layout::position,
                     3);
  Example e;
  for (std::int64_t i = 0; i < 20; ++i) {
    data.example(Split::varied, i, e);
    REQUIRE(e.input.size() == 6);
    for (std::size_t t = 0; t < 3; ++t) CHECK(e.input[t] == e.input[t + 3]);
    CHECK(e.target[0] == kIgnore);
    CHECK(e.target[1] == kIgnore);
    for (std::size_t t = 2; t < 6; ++t) CHECK(e.target[t] == e.input[(t + 1) % 3]);
  }
}

TEST_CASE("documents of several lines are whole, between boundaries of their own", "[data][text]") {
  TextOptions options{.documents = TextForm::paragraphs};
  const std::string paragraphs = "\n \nab\r\n b\n\t\nba\n\n\n";
  const Corpus text = given_text(paragraphs, options, 16);
  CHECK(text.tokens() == std::vector<std::string>{"\n", "\n\n", " ", "a", "b"});
  CHECK(text.splits() == std::array<std::int64_t, 3>{2, 1, 1});
  const std::map<std::string, std::string> rows{{text.where(0), shown_row(text, 0)},
                                                {text.where(1), shown_row(text, 1)}};
  CHECK(rows == std::map<std::string, std::string>{{"t.txt:3", "¶ab⏎␣b>ab⏎␣b¶"}, {"t.txt:6", "¶ba>ba¶"}});
  CHECK(text.remarks().empty());
  options.tokens = Tokenization::words;
  const Corpus words = given_text(paragraphs, options, 16);
  CHECK((shown_row(words, 0) == "¶ab⏎b>ab⏎b¶" || shown_row(words, 1) == "¶ab⏎b>ab⏎b¶"));
  const Corpus unseen =
      given_text("ab\n\n\u00A0\n\nba\n", options, 16);  // a word is not what looks like a space
  CHECK(unseen.splits()[0] == 2);
  CHECK(unseen.remarks().empty());
  options = {.documents = TextForm::paragraphs, .longer = LongDocuments::first};
  CHECK(shown_row(given_text("ab\nab\n", options, 3), 0) == "¶ab>ab⏎");

  options = {.documents = TextForm::records};
  const DataTexts texts{.main = {"t.fa", "% made by hand\n\n>a\nab\n\nb\n\n>b\n"},
                        .validation = {{"v.fa", ">a\n"}},
                        .test = {{"w.fa", ">b\nb"}},
                        .vocabulary = {},
                        .options = {.separator = ">"}};
  const Corpus records(texts, options, 16);
  const std::map<std::string, std::string> found{{records.where(0), shown_row(records, 0)},
                                                 {records.where(1), shown_row(records, 1)}};
  CHECK(found ==
        std::map<std::string, std::string>{{"t.fa:3", "¶>a⏎ab⏎⏎b>>a⏎ab⏎⏎b¶"}, {"t.fa:8", "¶>b>>b¶"}});
  CHECK(records.remarks() == std::vector<std::string>{"t.fa: 2 lines left out, before the first record"});
}

TEST_CASE("a document of several lines has the split of its text, in any order", "[data][text]") {
  const TextOptions options{.documents = TextForm::paragraphs};
  std::vector<std::string> documents;
  for (int i = 0; i < 60; ++i) documents.push_back(fmt::format("verse {}\nand line {}\n\n", i, i * 7));
  const auto split_of_each = [&] {
    std::string all;
    for (const std::string& document : documents) all += document;
    const Corpus text({.main = {"t.txt", all}}, options, 64);
    std::map<std::string, std::int64_t> splits;
    for (std::int64_t row = 0; row < text.rows(); ++row)
      splits[shown_row(text, row)] = row < text.splits()[0]                 ? 0
                                     : row < text.rows() - text.splits()[2] ? 1
                                                                            : 2;
    return splits;
  };
  const auto before = split_of_each();
  CHECK(before.size() == 60);
  std::ranges::reverse(documents);
  CHECK(split_of_each() == before);
}

TEST_CASE("records and paragraphs that do not fit the text say what would", "[data][text]") {
  const TextOptions records{.documents = TextForm::records};
  const DataTexts fasta{
      .main = {}, .validation = {}, .test = {}, .vocabulary = {}, .options = {.separator = ">"}};
  CHECK(text_problem("a\nb\n", records, 4, fasta) ==
        "t.txt: 1 problem\nt.txt: no line begins with task.separator='>'");
  CHECK(text_problem("", records, 4, fasta) == "t.txt: 1 problem\nt.txt: the file is empty");
  CHECK(
      text_problem(">a\n", records) ==
      "task.documents=records needs what their first lines begin with; set task.separator, such as '>' of FASTA");
  CHECK(text_problem("a\n", kTextLines, 4, fasta) ==
        "task.separator has no effect without task.documents=records; remove it");
}
