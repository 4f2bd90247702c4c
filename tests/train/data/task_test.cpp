#include "thimble/train/task.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "catch.h"
#include "thimble/engine/error.h"

using namespace thimble;

namespace {

Example sample(const TaskConfig& config, std::uint64_t index) {
  SampleRng rng(Random(7, Stream::data), index, 0);
  Example example;
  find_task(config.name).sample(config, rng, example);
  return example;
}

}  // namespace

TEST_CASE("tasks are listed in alphabetical order and found by name", "[data]") {
  const auto names = task_names();
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const char* name : {"copy", "reverse", "sort"}) {
    CHECK(std::count(names.begin(), names.end(), name) == 1);
    CHECK_FALSE(find_task(name).summary.empty());
  }
}

TEST_CASE("an unknown task is refused with the names there are", "[data]") {
  CHECK_THROWS_AS(find_task("revers"), DataError);
  CHECK_THROWS_WITH(find_task("revers"),
                    ContainsSubstring("unknown task revers;") && ContainsSubstring(", reverse, "));
}

TEST_CASE("targets follow the task's definition", "[data]") {
  for (std::uint64_t index = 0; index < 50; ++index) {
    TaskConfig config{.name = "reverse", .symbols = 5, .length = 9, .min_length = 1};
    const Example reversed = sample(config, index);
    const auto n = reversed.input.size();
    REQUIRE(reversed.target.size() == n);
    for (std::size_t i = 0; i < n; ++i) CHECK(reversed.target[i] == reversed.input[n - 1 - i]);

    config.name = "copy";
    const Example copied = sample(config, index);
    CHECK(copied.input == reversed.input);
    CHECK(copied.target == copied.input);

    config.name = "sort";
    const Example sorted = sample(config, index);
    REQUIRE(sorted.target.size() == n);
    for (std::size_t i = 1; i < n; ++i) CHECK(sorted.target[i - 1] <= sorted.target[i]);
    for (std::int32_t token = 0; token < 5; ++token)
      CHECK(std::count(sorted.target.begin(), sorted.target.end(), token) ==
            std::count(sorted.input.begin(), sorted.input.end(), token));
  }
}

TEST_CASE("symbols and lengths are uniform over what is allowed", "[data]") {
  const TaskConfig config{.name = "copy", .symbols = 3, .length = 6, .min_length = 3};
  std::map<std::int32_t, int> tokens;
  std::map<std::size_t, int> lengths;
  for (std::uint64_t index = 0; index < 4000; ++index) {
    const Example example = sample(config, index);
    ++lengths[example.input.size()];
    for (std::int32_t token : example.input) ++tokens[token];
  }
  REQUIRE(lengths.size() == 4);  // 3, 4, 5, 6: 1000 of each expected, standard deviation 27
  for (const auto& [length, count] : lengths) CHECK_THAT(static_cast<double>(count), WithinAbs(1000, 140));
  CHECK((lengths.begin()->first == 3 && lengths.rbegin()->first == 6));
  REQUIRE(tokens.size() == 3);  // 18000 tokens in all, 6000 of each
  for (const auto& [token, count] : tokens) CHECK_THAT(static_cast<double>(count), WithinAbs(6000, 350));
  CHECK((tokens.begin()->first == 0 && tokens.rbegin()->first == 2));
}

TEST_CASE("distinct inputs are counted over all lengths", "[data]") {
  CHECK(tasks::count_symbol_sequences({.symbols = 3, .length = 4}) == 81);
  CHECK(tasks::count_symbol_sequences({.symbols = 3, .length = 4, .min_length = 2}) == 9 + 27 + 81);
  CHECK(std::isinf(tasks::count_symbol_sequences({.symbols = 1000, .length = 8000})));
}

TEST_CASE("draws depend on index, lane and order alone", "[data]") {
  const Random random(1, Stream::data);
  const auto first_six = [&](std::uint64_t index, std::uint32_t lane) {
    SampleRng rng(random, index, lane);
    std::vector<std::int64_t> out(6);
    for (auto& draw : out) draw = rng.below(1'000'000'000);
    return out;
  };
  std::set<std::int64_t> seen;
  for (const auto& draws : {first_six(0, 0), first_six(1, 0), first_six(0, 1)})
    seen.insert(draws.begin(), draws.end());
  CHECK(seen.size() == 18);
  CHECK(first_six(3, 2) == first_six(3, 2));
}

TEST_CASE("a draw is the multiply-shift of the generator's words", "[data]") {
  const Random random(1, Stream::data);
  SampleRng rng(random, 5, 9);
  for (std::uint32_t call = 0; call < 3; ++call) {
    const auto words = random.words(5, call, 9);
    for (std::size_t half : {0U, 2U}) {
      const long double unit = (words[half + 1] * 0x1p32L + words[half]) * 0x1p-64L;
      CHECK(rng.below(4'000'000'000) == static_cast<std::int64_t>(std::floor(unit * 4e9L)));
    }
  }
}
