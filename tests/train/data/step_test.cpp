// The examples of a training step.
#include <map>
#include <set>

#include "catch.h"
#include "small_rows.h"

using namespace thimble;
using namespace thimble::rows;

TEST_CASE("an epoch shows every sequence once, in an order of its own", "[data]") {
  const Dataset data =
      dataset({.name = "reverse", .symbols = 50, .length = 8});  // 100 sequences, all distinct
  const auto epoch = [&](std::int64_t first_step) {
    std::vector<Tokens> out;
    for (std::int64_t s = first_step; s < first_step + 10; ++s) {
      const Batch batch = step(data, s, 10, 0, 10);
      for (std::int64_t i = 0; i < 10; ++i) out.push_back(row(batch.tokens, i, 8));
    }
    return out;
  };
  const auto first = epoch(0), second = epoch(10);
  const auto all = inputs(data, Split::train, 100);
  REQUIRE(all.size() == 100);
  CHECK(std::set<Tokens>(first.begin(), first.end()) == all);
  CHECK(std::set<Tokens>(second.begin(), second.end()) == all);
  CHECK(first != second);
  CHECK(first == epoch(0));
}

TEST_CASE("an incomplete last batch is left out", "[data]") {
  const Dataset data = dataset({.name = "reverse", .symbols = 50, .length = 8});
  std::set<Tokens> seen;
  for (std::int64_t s = 0; s < 3; ++s) {
    const Batch batch = step(data, s, 30, 0, 30);
    for (std::int64_t i = 0; i < 30; ++i) seen.insert(row(batch.tokens, i, 8));
  }
  CHECK(seen.size() == 90);
  // Then the second epoch begins, as it does after ten batches of ten.
  Tokens second_epoch;
  for (std::int64_t s : {10, 11, 12}) {
    const Batch batch = step(data, s, 10, 0, 10);
    second_epoch.insert(second_epoch.end(), batch.tokens.begin(), batch.tokens.end());
  }
  CHECK(step(data, 3, 30, 0, 30).tokens == second_epoch);
}

TEST_CASE("the order of an epoch depends on the seed", "[data]") {
  const auto order = [](std::uint64_t seed) {
    const Dataset data =
        dataset({.name = "reverse", .symbols = 50, .length = 8}, Layout::position, 100, seed);
    const Batch listed = fill(data, Split::train, 0, 100), shown = step(data, 0, 100, 0, 100);
    std::map<Tokens, std::int64_t> index;
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < 100; ++i) index[row(listed.tokens, i, 8)] = i;
    for (std::int64_t i = 0; i < 100; ++i) out.push_back(index.at(row(shown.tokens, i, 8)));
    return out;
  };
  CHECK(order(3) == order(3));
  CHECK(order(3) != order(4));
}

TEST_CASE("the rows of a step do not depend on how it is cut", "[data]") {
  for (std::int64_t train : {100, 0}) {
    const Dataset data = dataset(kReverse, Layout::position, train);
    for (std::int64_t s : {0, 7, 123}) {
      const Batch whole = step(data, s, 16, 0, 16);
      Tokens parts;
      for (auto [first, count] : {std::pair{0, 5}, std::pair{5, 1}, std::pair{6, 10}}) {
        const Batch part = step(data, s, 16, first, count);
        parts.insert(parts.end(), part.tokens.begin(), part.tokens.end());
      }
      CHECK(parts == whole.tokens);
    }
  }
}

TEST_CASE("an endless training set counts on through the steps", "[data]") {
  const Dataset data = dataset(kReverse, Layout::position, 0);
  CHECK(data.size(Split::train) == 0);
  CHECK(step(data, 3, 10, 2, 5).tokens == fill(data, Split::train, 32, 5).tokens);
  CHECK_NOTHROW(step(data, 1'000'000'000'000, 1000, 0, 1));
}
