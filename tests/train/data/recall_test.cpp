// Tasks whose answers are earlier successors of a token: associative_recall and induction.
#include <algorithm>
#include <cmath>
#include <set>

#include "catch.h"
#include "samples.h"
#include "thimble/engine/error.h"
#include "thimble/train/dataset.h"

using namespace thimble;
using namespace thimble::samples;

namespace {

const TaskConfig kRecall{.name = "associative_recall", .symbols = 20, .length = 23, .pairs = 4};
const TaskConfig kInduction{.name = "induction", .symbols = 64, .length = 16};

// The place, 0, 1, ..., where each key is asked for; -1 unless exactly one place is.
std::vector<std::int64_t> places_asked(const TaskConfig& config, const Example& e) {
  const auto pairs = static_cast<std::size_t>(config.pairs);
  std::vector<std::int64_t> places(pairs, -1);
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    int asked = 0;
    for (std::size_t i = 2 * pairs; i < e.input.size(); ++i) {
      if (e.target[i] == kIgnore || e.input[i] != e.input[2 * pair]) continue;
      ++asked;
      places[pair] = i % 2 == 0 ? static_cast<std::int64_t>(i / 2 - pairs) : -1;
    }
    if (asked != 1) places[pair] = -1;
  }
  return places;
}

}  // namespace

TEST_CASE("associative recall queries every key once", "[tasks]") {
  for (const TaskConfig& config :
       {kRecall, TaskConfig{.name = "associative_recall", .symbols = 8, .length = 16, .pairs = 4}}) {
    const auto values = static_cast<std::int32_t>(config.symbols / 2);
    for (const Example& e : draw(config, 500)) {
      REQUIRE(std::ssize(e.input) == config.length);
      REQUIRE(e.target.size() == e.input.size());
      std::set<std::int32_t> keys_seen, values_seen;
      for (std::size_t i = 0; i < 8; i += 2) {
        CHECK((e.input[i] >= 0 && e.input[i] < values));
        CHECK((e.input[i + 1] >= values && e.input[i + 1] < 2 * values));
        keys_seen.insert(e.input[i]);
        values_seen.insert(e.input[i + 1]);
      }
      CHECK(keys_seen.size() == 4);
      CHECK(values_seen.size() == 4);
      for (const std::int64_t place : places_asked(config, e)) CHECK(place >= 0);
      CHECK(std::ranges::count(e.target, kIgnore) == config.length - 4);
      for (std::size_t i = 0; i < e.target.size(); ++i) {
        if (e.target[i] == kIgnore) {
          CHECK(relevant(config, e, i).empty());
          continue;
        }
        const auto key = std::find(e.input.begin(), e.input.begin() + 8, e.input[i]);
        CHECK(e.target[i] == key[1]);
        CHECK(relevant(config, e, i) == Tokens{static_cast<std::int32_t>(key + 1 - e.input.begin())});
      }
    }
  }
}

TEST_CASE("associative recall draws places by zoology's power law, without replacement", "[tasks]") {
  const TaskConfig config{.name = "associative_recall", .symbols = 8, .length = 12, .pairs = 2};  // 4 places
  std::map<std::vector<std::int64_t>, double> shares;
  const int count = 40000;
  for (const Example& e : draw(config, count)) shares[places_asked(config, e)] += 1.0 / count;
  double weights[4], all = 0;
  for (int place = 0; place < 4; ++place) all += weights[place] = 0.01 * std::pow(place + 1, 0.01 - 1);
  CHECK(shares.size() == 12);
  for (std::int64_t first = 0; first < 4; ++first) {
    for (std::int64_t second = 0; second < 4; ++second) {
      if (first == second) continue;
      const double expected = weights[first] / all * weights[second] / (all - weights[first]);
      CAPTURE(first, second);
      CHECK_THAT((shares[{first, second}]), WithinAbs(expected, 0.011));  // four standard deviations or more
    }
  }
}

TEST_CASE("associative recall draws keys, values and filling uniformly", "[tasks]") {
  const TaskConfig config{.name = "associative_recall", .symbols = 8, .length = 13, .pairs = 3};
  const auto examples = draw(config, 20000);
  std::map<Tokens, double> keys, values;
  std::map<std::int32_t, double> last;  // always filling
  for (const Example& e : examples) {
    ++keys[{e.input[0], e.input[2], e.input[4]}];
    ++values[{e.input[1], e.input[3], e.input[5]}];
    ++last[e.input[12]];
  }
  CHECK((keys.size() == 24 && values.size() == 24 && last.size() == 8));
  for (const auto& [_, n] : keys) CHECK_THAT(n, WithinAbs(20000.0 / 24, 140));
  for (const auto& [_, n] : values) CHECK_THAT(n, WithinAbs(20000.0 / 24, 140));
  for (const auto& [_, n] : last) CHECK_THAT(n, WithinAbs(2500, 230));
  const auto shares = answer_shares(examples);
  CHECK(shares.size() == 4);
  for (const auto& [_, share] : shares)
    CHECK_THAT(share, WithinAbs(find_task(config.name).chance(config), 0.01));
  CHECK(find_task(config.name).floor(config) == 0);
}

TEST_CASE("associative recall counts its inputs", "[tasks]") {
  for (const auto& [length, pairs] : {std::pair{5, 1}, {6, 1}, {7, 1}, {8, 2}}) {
    const TaskConfig config{.name = "associative_recall", .symbols = 4, .length = length, .pairs = pairs};
    CAPTURE(length, pairs);
    double valid = 0;  // out of all sequences of 4 tokens, 0 and 1 keys, 2 and 3 values
    Tokens x(static_cast<std::size_t>(length));
    for (int number = 0; number < std::pow(4, length); ++number) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = number >> 2 * i & 3;
      bool good = pairs == 1 || (x[0] != x[2] && x[1] != x[3]);
      for (std::size_t pair = 0; pair < static_cast<std::size_t>(pairs); ++pair) {
        bool asked = false;
        for (std::size_t i = 2 * static_cast<std::size_t>(pairs); i + 1 < x.size(); i += 2)
          asked = asked || x[i] == x[2 * pair];
        good = good && x[2 * pair] < 2 && x[2 * pair + 1] >= 2 && asked;
      }
      valid += good;
    }
    std::set<Tokens> found;
    for (const Example& e : draw(config, 30000)) found.insert(e.input);
    CHECK(find_task(config.name).distinct_inputs(config) == valid);
    CHECK(static_cast<double>(found.size()) == valid);
  }
  const TaskConfig large{.name = "associative_recall", .symbols = 8192, .length = 512, .pairs = 64};
  CHECK(std::isinf(find_task(large.name).distinct_inputs(large)));
}

TEST_CASE("associative recall refuses keys that do not suit each other", "[tasks]") {
  TaskConfig config = kRecall;
  config.symbols = 21;
  CHECK_THROWS_AS(checked_task(config), DataError);
  CHECK_THROWS_WITH(checked_task(config), ContainsSubstring("associative_recall: symbols 21: must be even"));
  config.symbols = 6;
  CHECK_THROWS_WITH(checked_task(config), ContainsSubstring("pairs 4: 6 symbols have 3 keys"));
  config.symbols = 8;
  CHECK_NOTHROW(checked_task(config));
  config.length = 15;
  CHECK_THROWS_WITH(checked_task(config), ContainsSubstring("length 15") && ContainsSubstring("least 16"));
  config.length = 16;
  CHECK_NOTHROW(checked_task(config));
}

TEST_CASE("a task with positions without answers cannot have an output per next token", "[tasks]") {
  for (const char* name : {"associative_recall", "coreference", "masked", "relations"}) {
    CHECK_NOTHROW(model_sizes(*generated_source({.name = name}), Layout::position));
    CHECK_THROWS_AS(model_sizes(*generated_source({.name = name}), Layout::next), DataError);
    CHECK_THROWS_WITH(model_sizes(*generated_source({.name = name}), Layout::next),
                      EndsWith("; set model.output.per=position"));
  }
}

TEST_CASE("induction repeats a random sequence, with the next token as the answer", "[tasks]") {
  for (std::int64_t length : {1, 2, 5, 16}) {
    TaskConfig config = kInduction;
    config.length = length;
    for (const Example& e : draw(config, 100)) {
      const auto n = static_cast<std::size_t>(length);
      REQUIRE(e.input.size() == 2 * n - 1);
      REQUIRE(e.target.size() == 2 * n - 1);
      Tokens twice(e.input.begin(), e.input.begin() + length);
      twice.insert(twice.end(), e.input.begin(), e.input.begin() + length);
      for (std::size_t i = 0; i < 2 * n - 1; ++i) {
        CHECK(e.input[i] == twice[i]);
        CHECK(e.target[i] == twice[i + 1]);
        const Tokens keys = relevant(config, e, i);
        if (i < n) {
          CHECK(keys.empty());
        } else {
          REQUIRE(keys.size() == 1);
          const auto key = static_cast<std::size_t>(keys[0]);
          CHECK(key == i - n + 1);
          CHECK(e.input[key] == e.target[i]);
          CHECK(e.input[key - 1] == e.input[i]);
        }
      }
    }
  }
  CHECK(find_task("induction").causal);
  CHECK(find_task("induction").size(kInduction).input == 31);
}

TEST_CASE("the floor of induction is what its prefixes leave open", "[tasks]") {
  CHECK_THAT(find_task("induction").floor(kInduction), WithinAbs(2.01236, 5e-6));
  CHECK(find_task("induction").chance(kInduction) == 1.0 / 64);
  const TaskConfig config{.name = "induction", .symbols = 3, .length = 3};
  std::map<Tokens, Tokens> all;  // every input, all equally likely, and its answers
  for (const Example& e : draw(config, 2000)) all[e.input] = e.target;
  CHECK(all.size() == 27);
  CHECK(find_task("induction").distinct_inputs(config) == 27);
  double entropy = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    std::map<Tokens, std::map<std::int32_t, double>> answers;
    for (const auto& [input, target] : all)
      ++answers[Tokens(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(i) + 1)][target[i]];
    for (const auto& [prefix, counts] : answers) {
      double total = 0;
      for (const auto& [_, n] : counts) total += n;
      for (const auto& [_, n] : counts) entropy -= n / 27 * std::log(n / total);
    }
  }
  CHECK_THAT(find_task("induction").floor(config), WithinRel(entropy / 5, 1e-12));
}
