// What held-out sequences have in common with training, each named as what it is.
#include "catch.h"
#include "small_rows.h"

using namespace thimble;
using namespace thimble::rows;

namespace {

// How those of validation and test coincide with training.
Coincidences found(const Source& source) {
  Coincidences all;
  for (const Split split : {Split::validation, Split::test}) {
    const Coincidences some = source.coincidences(split, source.rows(split), source.rows(Split::train));
    all.equal_lines += some.equal_lines;
    all.equal_unknown += some.equal_unknown;
    all.equal_windows += some.equal_windows;
    all.equal_tokens += some.equal_tokens;
  }
  return all;
}

std::int64_t held_out(const Source& source) {
  return source.rows(Split::validation) + source.rows(Split::test);
}

std::string lines(int count, const std::string& before, const std::string& after) {
  std::string text;
  for (int i = 0; i < count; ++i) text += before + std::to_string(i) + after + "\n";
  return text;
}

Corpus corpus(const std::string& text, Tokenization tokens, std::int64_t length, TableOptions options = {}) {
  return Corpus({.main = {"t.txt", text}, .options = options}, {.tokens = tokens}, length);
}

}  // namespace

TEST_CASE("inputs are counted as texts, not as lines", "[data]") {
  std::string text;
  for (int i = 0; i < 60; ++i) text += fmt::format("a{} x\tp\n", i % 3);
  for (int i = 0; i < 40; ++i) text += fmt::format("u{} x\tp\n", i);
  const SourcePointer table = table_of(text);
  CHECK(table->distinct_inputs() == 43);
  CHECK(table->rows(Split::train) + held_out(*table) == 100);
  const SourcePointer documents = corpus_of(lines(300, "w", "") + lines(200, "w", ""), {}, 12);
  CHECK(documents->distinct_inputs() == 300);
  // The inputs "⏎abcd" of each document and five that end differently, as a window of 5 tokens reads them.
  const SourcePointer cut = corpus_of(lines(300, "abcdef", ""), {}, 5);
  std::set<Tokens> inputs;
  Example e;
  for (const Split split : {Split::train, Split::validation, Split::test})
    for (std::int64_t i = 0; i < cut->rows(split); ++i) {
      cut->example(split, i, e);
      inputs.insert(e.input);
    }
  CHECK(cut->distinct_inputs() == static_cast<double>(inputs.size()));
  CHECK(inputs.size() < 310);
}

TEST_CASE("rows of one file share no input, unless tokens became <unk>", "[data]") {
  const std::string text = lines(200, "see w", "\tb");
  const SourcePointer apart = table_of(text);
  CHECK(apart->disjoint());
  CHECK(found(*apart).total() == 0);
  const Table rare({.main = {"t.tsv", text}, .options = {.vocabulary = VocabularyOf::training}});
  CHECK_FALSE(rare.disjoint());
  CHECK(found(rare).equal_unknown == held_out(rare));
  CHECK(found(rare).total() == held_out(rare));
  const Table own({.main = {"t.tsv", text},
                   .validation = {{"v.tsv", "see w1\tc\nsee w7\tb\n"}},
                   .test = {{"w.tsv", "x\ty\n"}}});
  CHECK(found(own).equal_lines == own.rows(Split::validation));
  CHECK(found(own).total() == own.rows(Split::validation));
}

TEST_CASE("windows, tokens and lines of a text coincide for reasons of their own", "[data][text]") {
  const Corpus cut = corpus(lines(300, "abcdefghij", ""), Tokenization::characters, 8);
  CHECK(found(cut).equal_windows > held_out(cut) / 3);
  CHECK(found(cut).total() == found(cut).equal_windows);
  // "w1 !" and "w1!" are the same two words, and other lines.
  const Corpus words = corpus(lines(200, "w", " !") + lines(200, "w", "!"), Tokenization::words, 8);
  CHECK(found(words).equal_tokens > held_out(words) / 2);
  CHECK(found(words).total() == found(words).equal_tokens);
  CHECK_FALSE(words.disjoint());
  const Corpus rare =
      corpus(lines(400, "see w", ""), Tokenization::words, 8, {.vocabulary = VocabularyOf::training});
  CHECK(found(rare).equal_unknown == held_out(rare));
  const Corpus apart = corpus(lines(400, "w", ""), Tokenization::characters, 8);
  CHECK((apart.disjoint() && found(apart).total() == 0));
  const Corpus own({.main = {"t.txt", lines(400, "w", "")}, .validation = {{"v.txt", "w3\nw399\nx\n"}}}, {},
                   8);
  CHECK(own.coincidences(Split::validation, 3, own.rows(Split::train)).equal_lines == 2);
}

TEST_CASE("only equal texts are remarked on as the same input", "[data]") {
  const auto remarks = [](const std::string& text, const TableOptions& options) {
    return Table({.main = {"t.tsv", text}, .options = options}).remarks();
  };
  const std::string differ = lines(200, "see w", "\tb") + "see other\ta\n";
  const TableOptions rare{.vocabulary = VocabularyOf::training};
  const auto has = [&](const std::vector<std::string>& all, std::string_view part) {
    return std::ranges::any_of(all, [&](const std::string& one) { return one.find(part) != one.npos; });
  };
  CHECK(has(remarks(differ, rare),
            "t.tsv:2: same input after tokens became <unk> as in t.tsv:1 (and 199 more); "));
  CHECK_FALSE(has(remarks(differ, rare), "same input with another target"));
  CHECK_FALSE(has(remarks(differ, rare), "same input and target"));
  CHECK_FALSE(has(remarks(differ, {}), "same input"));
  const std::string equal = lines(200, "see w", "\tb") + "see w5\ta\nsee w6\tb\n";
  CHECK(has(remarks(equal, {}), "t.tsv:201: same input with another target as in t.tsv:6; "));
  CHECK(has(remarks(equal, {}), "t.tsv:202: same input and target as in t.tsv:7; "));
}

TEST_CASE("the first windows of validation and test are a sample of a stream", "[data][text]") {
  // The first half of the held-out text is "a", the second "b".
  std::string text(8000, 'a');
  text += std::string(1000, 'a') + std::string(1000, 'b') + std::string(1000, 'a') + std::string(1000, 'b');
  for (std::size_t i = 0; i < text.size(); i += 7) text[i] = static_cast<char>('c' + i % 20);
  const SourcePointer stream = corpus_of(text, {.documents = TextForm::stream, .split = "0.7,0.15,0.15"}, 8);
  for (const Split split : {Split::validation, Split::test}) {
    const std::int64_t all = stream->rows(split), first = all / 4;
    std::set<std::string> places;
    std::int64_t early = 0;
    for (std::int64_t i = 0; i < all; ++i) {
      const std::string where = stream->where(split, i);
      places.insert(where);
      const std::int64_t token = std::stoll(where.substr(where.rfind(' ')));
      const std::int64_t begin = split == Split::validation ? 8400 : 10200;
      early += i < first && token < begin + all * 8 / 4 ? 1 : 0;
    }
    CHECK(std::ssize(places) == all);
    CHECK(early < first / 2);  // a quarter of them, were it not the start
    CHECK(early > first / 10);
  }
  // It depends on the text of a window alone: the same windows behind another training text.
  std::string other = text;
  for (std::size_t i = 0; i < 8000; ++i) other[i] = 'z';
  const SourcePointer shifted =
      corpus_of(other, {.documents = TextForm::stream, .split = "0.7,0.15,0.15"}, 8);
  for (std::int64_t i = 0; i < 20; ++i)
    CHECK(stream->where(Split::test, i) == shifted->where(Split::test, i));
}
