#include "thimble/train/dataset.h"

#include <set>

#include "catch.h"
#include "small_rows.h"
#include "thimble/engine/error.h"

using namespace thimble;
using namespace thimble::rows;

namespace {

// Whether rows and row_labels are where the labels are.
void check_rows(const Batch& batch) {
  Tokens rows, labels;
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    if (batch.labels[i] == kIgnore) continue;
    rows.push_back(static_cast<std::int32_t>(i));
    labels.push_back(batch.labels[i]);
  }
  CHECK(batch.rows == rows);
  CHECK(batch.row_labels == labels);
}

}  // namespace

TEST_CASE("a dataset has the sizes of its splits", "[data]") {
  const Dataset data = dataset();
  CHECK(data.vocabulary() == 4);
  CHECK(data.length() == 6);
  CHECK(data.size(Split::train) == 100);
  CHECK(data.size(Split::validation) == 40);
  CHECK(data.size(Split::test) == 50);
  CHECK(split_name(Split::train) == "train");
  CHECK(split_name(Split::validation) == "validation");
  CHECK(split_name(Split::test) == "test");
}

TEST_CASE("the same seed gives the same batches, another seed and another split others", "[data]") {
  for (Split split : {Split::train, Split::validation, Split::test}) {
    const Batch batch = fill(dataset(), split, 5, 20);
    CHECK(batch.tokens == fill(dataset(), split, 5, 20).tokens);
    CHECK(batch.tokens != fill(dataset(kReverse, Layout::position, 100, 4), split, 5, 20).tokens);
    CHECK(batch.tokens != fill(dataset(), split, 6, 20).tokens);
  }
  const TaskConfig tiny{
      .name = "reverse", .symbols = 2, .length = 7};  // not disjoint: only the counter differs
  CHECK(fill(dataset(tiny), Split::validation, 0, 40).tokens !=
        fill(dataset(tiny), Split::test, 0, 40).tokens);
  CHECK(fill(dataset(tiny), Split::validation, 0, 40).tokens !=
        fill(dataset(tiny), Split::train, 0, 40).tokens);
}

TEST_CASE("splits share no input", "[data]") {
  const Dataset data(kReverse, {.train = 0, .validation = 4000, .test = 4000}, Layout::position, 3);
  REQUIRE(data.source().disjoint());
  const auto train = inputs(data, Split::train, 40000);
  const auto validation = inputs(data, Split::validation, 4000), test = inputs(data, Split::test, 4000);
  CHECK(shared(train, validation) == 0);
  CHECK(shared(train, test) == 0);
  CHECK(shared(validation, test) == 0);
  // So many draws find all 4^6 = 4096 inputs; a tenth is 410, standard deviation 19.
  CHECK(train.size() + validation.size() + test.size() == 4096);
  CHECK_THAT(static_cast<double>(validation.size()), WithinAbs(410, 80));
  CHECK_THAT(static_cast<double>(test.size()), WithinAbs(410, 80));
}

TEST_CASE("the seed does not change what is held out", "[data]") {
  const auto held_out = [](std::uint64_t seed) {
    return inputs(Dataset(kReverse, {.train = 0, .validation = 1, .test = 6000}, Layout::position, seed),
                  Split::test, 6000);
  };
  CHECK(held_out(1) == held_out(2));
}

TEST_CASE("a task with fewer than 200 inputs draws every split from all of them", "[data]") {
  const TaskConfig small{.name = "copy", .symbols = 199, .length = 1};
  const TaskConfig enough{.name = "copy", .symbols = 200, .length = 1};
  CHECK_FALSE(dataset(small).source().disjoint());
  CHECK(dataset(enough).source().disjoint());
  const Dataset data(small, {.train = 0, .validation = 3000, .test = 3000}, Layout::position, 3);
  CHECK(inputs(data, Split::train, 3000).size() == 199);
  CHECK(inputs(data, Split::test, 3000).size() == 199);
}

TEST_CASE("a batch holds the examples in order", "[data]") {
  for (std::int64_t min_length : {0, 2}) {
    TaskConfig task = kReverse;
    task.min_length = min_length;
    const Dataset data = dataset(task);
    const Batch batch = fill(data, Split::validation, 3, 37);
    REQUIRE(batch.sequences == 37);
    REQUIRE(batch.length == 6);
    REQUIRE(batch.tokens.size() == 37 * 6);
    REQUIRE(batch.labels.size() == 37 * 6);
    REQUIRE(batch.lengths.size() == 37);
    std::int64_t labeled = 0;
    std::set<std::int32_t> lengths;
    for (std::int64_t i = 0; i < 37; ++i) {
      Example example;
      data.example(Split::validation, 3 + i, example);
      const auto n = std::ssize(example.input);
      CHECK(batch.lengths[static_cast<std::size_t>(i)] == n);
      lengths.insert(static_cast<std::int32_t>(n));
      labeled += n;
      example.input.resize(6, 0);
      example.target.resize(6, kIgnore);
      CHECK(row(batch.tokens, i, 6) == example.input);
      CHECK(row(batch.labels, i, 6) == example.target);
    }
    CHECK(std::ssize(batch.rows) == labeled);
    check_rows(batch);
    CHECK(lengths == (min_length == 0 ? std::set<std::int32_t>{6} : std::set<std::int32_t>{2, 3, 4, 5, 6}));
  }
}

TEST_CASE("a batch forgets what it held before", "[data]") {
  TaskConfig task = kReverse;
  task.min_length = 1;
  const Dataset data = dataset(task);
  Batch batch;
  data.fill(Split::train, 0, 60, batch);
  const void* storage = batch.tokens.data();
  data.fill(Split::train, 60, 20, batch);
  const Batch fresh = fill(data, Split::train, 60, 20);
  CHECK(batch.tokens == fresh.tokens);
  CHECK(batch.labels == fresh.labels);
  CHECK(batch.lengths == fresh.lengths);
  CHECK(batch.rows == fresh.rows);
  CHECK(batch.row_labels == fresh.row_labels);
  CHECK(batch.tokens.data() == storage);
}

TEST_CASE("next-token layout: the label of a position is the token after it", "[data]") {
  const TaskConfig task{.name = "sort", .symbols = 3, .length = 3, .min_length = 1};
  const Dataset data(task, {.train = 0, .validation = 1, .test = 1}, Layout::next, 5);
  CHECK(data.length() == 5);
  CHECK(dataset({.name = "sort", .symbols = 3, .length = 6}, Layout::next).length() == 11);
  const Batch batch = fill(data, Split::train, 0, 400);
  check_rows(batch);
  bool long_one = false, short_one = false;
  for (std::int64_t i = 0; i < batch.sequences; ++i) {
    Example example;
    data.example(Split::train, i, example);
    const std::int32_t length = batch.lengths[static_cast<std::size_t>(i)];
    if (example.input == Tokens{2, 0, 1}) {
      CHECK(row(batch.tokens, i, 5) == Tokens{2, 0, 1, 0, 1});
      CHECK(row(batch.labels, i, 5) == Tokens{kIgnore, kIgnore, 0, 1, 2});
      CHECK(length == 5);
      long_one = true;
    }
    if (example.input == Tokens{1, 0}) {
      CHECK(row(batch.tokens, i, 5) == Tokens{1, 0, 0, 0, 0});
      CHECK(row(batch.labels, i, 5) == Tokens{kIgnore, 0, 1, kIgnore, kIgnore});
      CHECK(length == 3);
      short_one = true;
    }
  }
  CHECK((long_one && short_one));
}

TEST_CASE("pairs layout: the encoder reads the input, the decoder from <begin> on, up to <end>", "[data]") {
  const TaskConfig task{.name = "sort", .symbols = 3, .length = 3, .min_length = 1};
  const Dataset data(task, {.train = 0, .validation = 1, .test = 1}, Layout::seq2seq, 5);
  CHECK(data.names() == std::vector<std::string>{"0", "1", "2", "<begin>", "<end>"});
  CHECK(data.vocabulary() == 5);
  CHECK(data.length() == 4);
  CHECK(data.source_length() == 3);
  const Batch batch = fill(data, Split::train, 0, 400);
  CHECK(batch.source_length == 3);
  check_rows(batch);
  int found = 0;
  for (std::int64_t i = 0; i < batch.sequences; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (row(batch.sources, i, 3) == Tokens{2, 0, 1} && batch.source_lengths[at] == 3) {
      CHECK(row(batch.tokens, i, 4) == Tokens{3, 0, 1, 2});
      CHECK(row(batch.labels, i, 4) == Tokens{0, 1, 2, 4});
      CHECK(batch.lengths[at] == 4);
      found |= 1;
    }
    if (row(batch.sources, i, 3) == Tokens{1, 0, 0} && batch.source_lengths[at] == 2) {
      CHECK(row(batch.tokens, i, 4) == Tokens{3, 0, 1, 0});
      CHECK(row(batch.labels, i, 4) == Tokens{0, 1, 4, kIgnore});
      CHECK(batch.lengths[at] == 3);
      found |= 2;
    }
  }
  CHECK(found == 3);
  CHECK(data.alignments({{2, 0, 1}, {0, 1, 2}}).front().query == 0);
  CHECK_THROWS_WITH(dataset({.name = "masked"}, Layout::seq2seq),
                    ContainsSubstring("a position without an answer: "));
  CHECK(fill(dataset(), Split::train, 0, 3).sources.empty());
  CHECK(model_sizes(*generated_source(task), Layout::next).source_length == 0);
}

TEST_CASE("alignments lead from the position of an answer to those it depends on", "[data]") {
  using Pairs = std::vector<std::pair<std::int32_t, std::int32_t>>;
  const auto aligned = [](Layout layout, const Tokens& target) {
    Pairs found;
    for (const auto& [query, key, kind] : dataset(kReverse, layout).alignments({{2, 0, 1}, target}))
      found.emplace_back(query, key);
    return found;
  };
  for (const Layout layout : {Layout::position, Layout::seq2seq}) {
    CHECK(aligned(layout, {1, 0, 2}) == Pairs{{0, 2}, {1, 1}, {2, 0}});
    CHECK(aligned(layout, {1, kIgnore, 2}) == Pairs{{0, 2}, {2, 0}});
  }
  // The last token of the input is where the first answer is predicted.
  CHECK(aligned(Layout::next, {1, 0, 2}) == Pairs{{2, 2}, {3, 1}, {4, 0}});
}

TEST_CASE("a token of the task may be called <begin> or <end>, too", "[data]") {
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("{} a\tb <end>\n", i);
  const SourcePointer source = table_of(text);
  CHECK(token_names(*source, Layout::next).size() == 43);
  const std::vector<std::string> names = token_names(*source, Layout::seq2seq);
  CHECK((names[43] == "<begin>" && names[44] == "<end'>"));
}

TEST_CASE("sequence layout: one label per sequence", "[data]") {
  const TaskConfig task{.name = "copy", .symbols = 5, .length = 1};
  const Batch batch = fill(dataset(task, Layout::sequence), Split::train, 0, 30);
  CHECK(batch.labels == batch.tokens);
  CHECK(std::ssize(batch.rows) == 30);
  check_rows(batch);
  CHECK(batch.length == 1);
  CHECK_THROWS_AS(dataset(kReverse, Layout::sequence), DataError);
  CHECK_THROWS_WITH(dataset(kReverse, Layout::sequence), ContainsSubstring("6 answers: "));
}

TEST_CASE("what lies outside the data is refused", "[data]") {
  const Dataset data = dataset();
  Example example;
  Batch batch;
  CHECK_THROWS_AS(data.example(Split::train, 100, example), ShapeError);
  CHECK_THROWS_WITH(data.example(Split::train, 100, example), ContainsSubstring("train example 100 of 100"));
  CHECK_THROWS_AS(data.example(Split::test, -1, example), ShapeError);
  CHECK_THROWS_AS(dataset(kReverse, Layout::position, 0).example(Split::train, -1, example), ShapeError);
  CHECK_THROWS_AS(data.fill(Split::validation, 30, 11, batch), ShapeError);
  CHECK_NOTHROW(data.fill(Split::validation, 30, 10, batch));
  CHECK_THROWS_AS(data.fill(Split::train, -1, 2, batch), ShapeError);
  CHECK_THROWS_AS(data.fill(Split::train, 0, -1, batch), ShapeError);
  CHECK_THROWS_AS(data.fill_step(0, 10, 5, 6, batch), ShapeError);
  CHECK_THROWS_AS(data.fill_step(-1, 10, 0, 1, batch), ShapeError);
  CHECK_THROWS_AS(data.fill_step(0, 101, 0, 1, batch), DataError);
  CHECK_NOTHROW(data.fill_step(0, 100, 0, 1, batch));
}

TEST_CASE("a data set that cannot be is refused", "[data]") {
  CHECK_THROWS_AS(dataset({.name = "nothing"}), DataError);
  CHECK_THROWS_WITH(dataset({.name = "copy", .symbols = 0}), ContainsSubstring("symbols 0: must be"));
  CHECK_THROWS_AS(dataset({.name = "copy", .symbols = 3'000'000'000}), DataError);
  CHECK_THROWS_WITH(dataset({.name = "copy", .length = 0}), ContainsSubstring("length 0"));
  CHECK_THROWS_WITH(dataset({.name = "copy", .length = 4, .min_length = 5}),
                    ContainsSubstring("min_length 5"));
  CHECK_THROWS_WITH(Dataset(kReverse, {.train = 1, .validation = -1, .test = 1}, Layout::position, 1),
                    ContainsSubstring("-1 validation"));
}

TEST_CASE("the longest model input follows from task and layout", "[data]") {
  const TaskConfig task{.name = "sort", .symbols = 3, .length = 6, .min_length = 2};
  CHECK(model_sizes(*generated_source(task), Layout::position).length == 6);
  CHECK(model_sizes(*generated_source(task), Layout::next).length == 11);
  CHECK_THROWS_AS(model_sizes(*generated_source(task), Layout::sequence), DataError);
}
