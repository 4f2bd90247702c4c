// Windows of a text, and the batches that training makes of them.
#include <algorithm>
#include <map>
#include <set>

#include "catch.h"
#include "corpora.h"
#include "small_rows.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/temporary_directory.h"

using namespace thimble;

TEST_CASE("windows of validation and test may overlap, and predict each token once", "[data][text]") {
  TextOptions options = kTextStream;
  options.stride = 3;
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  const Corpus stream({.main = {"t.txt", text + text}}, options, 8);
  const Corpus apart({.main = {"t.txt", text + text}}, kTextStream, 8);
  CHECK(stream.splits()[0] == apart.splits()[0]);
  CHECK(shown_row(stream, 0) == shown_row(apart, 0));
  CHECK(stream.starts() == apart.starts());
  const Corpus test({.main = {"t.txt", text + text}, .test = {{"u.txt", text.substr(0, 15)}}}, options, 8);
  CHECK(test.splits()[2] == 3);  // of 14 predictions the first 8, then 3 each
  const std::int64_t first = test.splits()[0] + test.splits()[1];
  std::map<std::string, std::string> shown;  // in the order of their hashes
  for (std::int64_t row = first; row < first + 3; ++row) shown[test.where(row)] = shown_row(test, row);
  CHECK(shown == std::map<std::string, std::string>{{"u.txt: token 1", "abcdefgh>bcdefghi"},
                                                    {"u.txt: token 4", "defghijk>.....jkl"},
                                                    {"u.txt: token 7", "ghijklmn>.....mno"}});
  CHECK(test.size(first + 2).input == 8);
  CHECK(test.remarks().empty());
  TextOptions lines = kTextLines;
  lines.stride = 1;
  const Corpus documents({.main = {"t.txt", lines_of_words(300)}, .test = {{"u.txt", "w12345\n"}}}, lines, 4);
  const std::int64_t test_row = documents.splits()[0] + documents.splits()[1];
  CHECK(documents.splits()[2] == 4);  // of 7 predictions the first 4, then 1 each
  CHECK(shown_row(documents, test_row) == "⏎w12>w123");
  CHECK(shown_row(documents, test_row + 3) == "2345>...⏎");
  CHECK(documents.size(test_row + 3).input == 4);
  options.stride = 9;
  CHECK_THROWS_WITH(given_text("abcdefghijklmnopqrstuvwxyz", options, 8),
                    "task.stride (9) must be at most task.length (8); lower it");
}

TEST_CASE("a stream is read in windows, in training at any place", "[data][text]") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += i % 10 == 9 ? '\n' : static_cast<char>('a' + i % 10);
  TextOptions options = kTextStream;
  options.split = "0.5,0.3,0.2";
  const Corpus stream({.main = {"t.txt", text}}, options, 8);
  CHECK(stream.token_count() == 100);
  CHECK(stream.starts() == 42);  // of 50 tokens, those that 8 and the next one follow
  CHECK(stream.splits() == std::array<std::int64_t, 3>{7, 4, 3});  // of 49, 29 and 19 predictions
  CHECK(Corpus({.main = {"t.txt", text}}, options, 7).splits()[0] == 7);
  CHECK(shown_row(stream, 0) == "abcdefgh>bcdefghi");
  CHECK(shown_row(stream, 6) == "i>⏎");
  CHECK(shown_row(stream, 7) == "abcdefgh>bcdefghi");  // token 50
  CHECK(stream.where(7) == "t.txt: token 51");
  Example e;
  stream.example_from(41, e);
  CHECK(e.input.size() == 8);
  CHECK(stream.tokens()[static_cast<std::size_t>(e.input[0])] == "b");
  options.split = "0.9,0.1";
  const Corpus both({.main = {"t.txt", text}}, options, 8);
  CHECK(both.splits()[1] == 2);
  CHECK(both.splits()[2] == 2);
  CHECK(shown_row(both, both.splits()[0]) == shown_row(both, both.splits()[0] + 2));
  const Corpus own({.main = {"t.txt", text}, .validation = {{"v.txt", "abcabc"}}}, options, 8);
  CHECK(own.splits()[0] == 12);  // of 90 tokens
  CHECK(shown_row(own, own.splits()[0]) == "abcab>bcabc");
  CHECK(own.where(own.splits()[0]) == "v.txt: token 1");
}

TEST_CASE("training on a stream reads shown at random places, the same for any batches", "[data][text]") {
  std::string text;
  for (int i = 0; i < 600; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 26);
  const rows::SourcePointer source = rows::corpus_of(text, kTextStream, 8);
  const DataConfig all{.train = kAll, .validation = kAll, .test = kAll};
  const Dataset data(source, all, Layout::position, 5);
  Batch whole, part;
  data.fill_step(3, 4, 0, 4, whole);
  data.fill_step(3, 4, 2, 2, part);
  CHECK(std::equal(part.tokens.begin(), part.tokens.end(), whole.tokens.begin() + 16));
  std::set<std::int64_t> places;
  for (std::int64_t step = 0; step < 500; ++step) {
    const std::int64_t place = data.training_index(step, 4, step % 4);
    CHECK((place >= 0 && place < source->starts()));
    places.insert(place);
  }
  CHECK(places.size() > 300);  // of 472, about 308
  CHECK(*places.rbegin() > 460);
}

TEST_CASE("documents of a batch are in the order of their lengths, and padded to the longest",
          "[data][text]") {
  std::string text;
  for (int i = 0; i < 500; ++i)
    text += std::string(static_cast<std::size_t>(i * 7 % 11), 'x') + fmt::format("{}\n", i);
  const Dataset data(rows::corpus_of(text, {}, 12), {.train = kAll, .validation = kAll, .test = kAll},
                     Layout::position, 5);
  for (const std::int64_t step : {0, 3, 40}) {
    Batch whole, part;
    data.fill_step(step, 16, 0, 16, whole);
    CHECK(std::ranges::is_sorted(whole.lengths));
    CHECK(whole.length == whole.lengths.back());
    std::set<std::int64_t> indices;
    for (std::int64_t first = 0; first < 16; first += 4) {
      data.fill_step(step, 16, first, 4, part);
      CHECK(part.length == part.lengths.back());
      CHECK(std::ranges::equal(part.lengths,
                               std::span(whole.lengths).subspan(static_cast<std::size_t>(first), 4)));
      for (std::int64_t i = 0; i < 4; ++i) {
        CHECK(std::equal(part.tokens.begin() + i * part.length,
                         part.tokens.begin() + i * part.length + part.lengths[static_cast<std::size_t>(i)],
                         whole.tokens.begin() + (first + i) * whole.length));
        indices.insert(data.training_index(step, 16, first + i));
      }
    }
    CHECK(indices.size() == 16);  // an epoch repeats none
  }
  CHECK(rows::fill(data, Split::test, 0, 3).length == 12);
}
