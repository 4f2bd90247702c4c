#include "catch.h"
#include "samples.h"
#include "small_rows.h"

using namespace thimble;
using namespace thimble::rows;

namespace {

const TaskConfig kAddition{.name = "modular_addition", .symbols = 13};

Dataset addition(std::uint64_t seed) {
  return Dataset(kAddition, {.train = 50, .validation = 30, .test = 1000}, Layout::sequence, seed);
}

}  // namespace

TEST_CASE("modular addition adds every pair", "[tasks]") {
  const Task& task = checked_task(kAddition);
  CHECK(task.distinct_inputs(kAddition) == 169);
  std::set<Tokens> seen;
  std::vector<Example> examples(169);
  for (std::int64_t index = 0; index < 169; ++index) {
    Example& e = examples[static_cast<std::size_t>(index)];
    task.at(kAddition, index, e);
    REQUIRE(e.input.size() == 3);
    REQUIRE(e.target.size() == 1);
    for (std::size_t i : {0U, 1U}) CHECK((e.input[i] >= 0 && e.input[i] < 13));
    CHECK(e.input[2] == 13);
    CHECK((e.input[0] + e.input[1] - e.target[0]) % 13 == 0);
    CHECK((e.target[0] >= 0 && e.target[0] < 13));
    CHECK(samples::relevant(kAddition, e, 0) == Tokens{0, 1});
    seen.insert(e.input);
  }
  CHECK(seen.size() == 169);
  const auto tokens = task.tokens(kAddition);
  CHECK(tokens.size() == 14);
  CHECK(tokens[13] == "=");
  const auto shares = samples::answer_shares(examples);
  for (const auto& [_, share] : shares) CHECK_THAT(share, WithinRel(task.chance(kAddition), 1e-9));
  CHECK(shares.size() == 13);
  CHECK(task.floor(kAddition) == 0);
}

TEST_CASE("the splits of modular addition share out all pairs, by seed", "[tasks]") {
  const Dataset data = addition(1);
  CHECK(data.source().disjoint());
  CHECK(data.size(Split::train) == 50);
  CHECK(data.size(Split::validation) == 30);
  CHECK(data.size(Split::test) == 89);
  const auto train = inputs(data, Split::train, 50), validation = inputs(data, Split::validation, 30),
             test = inputs(data, Split::test, 89);
  CHECK((train.size() == 50 && validation.size() == 30 && test.size() == 89));
  CHECK(shared(train, validation) + shared(train, test) + shared(validation, test) == 0);
  CHECK(inputs(addition(1), Split::train, 50) == train);
  CHECK(inputs(addition(2), Split::train, 50) != train);
}

TEST_CASE("a split for which training leaves no pair is empty, and says so", "[tasks]") {
  const Dataset data({.name = "modular_addition", .symbols = 5}, {.train = 24, .validation = 4, .test = 4},
                     Layout::sequence, 1);
  CHECK(data.size(Split::validation) == 0);
  CHECK(data.size(Split::test) == 1);
  CHECK_NOTHROW(data.require_rows(Split::test));
  CHECK_NOTHROW(data.require_rows(Split::varied));
  CHECK_THROWS_WITH(
      data.require_rows(Split::validation),
      "task modular_addition: data.train has 24 of the 25 inputs, so the validation split is empty; lower data.train");
}

TEST_CASE("validation takes at most half of what training leaves of modular addition", "[tasks]") {
  const auto sizes = [](std::int64_t validation, std::int64_t test) {
    const Dataset data(kAddition, {.train = 100, .validation = validation, .test = test}, Layout::sequence,
                       1);
    return std::pair(data.size(Split::validation), data.size(Split::test));
  };
  CHECK(sizes(1000, 1000) == std::pair<std::int64_t, std::int64_t>(34, 35));  // of 169 - 100
  CHECK(sizes(1000, 20) == std::pair<std::int64_t, std::int64_t>(34, 20));
  CHECK(sizes(10, 1000) == std::pair<std::int64_t, std::int64_t>(10, 59));
}
