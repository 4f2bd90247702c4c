// Tasks about places, counts and brackets against plain statements of their rules.
#include <algorithm>
#include <cmath>
#include <set>

#include "catch.h"
#include "samples.h"
#include "small_rows.h"
#include "thimble/engine/error.h"

using namespace thimble;
using rows::Tokens;
using samples::relevant, samples::Tokens;

namespace {

using Words = std::vector<std::string>;

Words names(const TaskConfig& config, const Tokens& tokens) {
  const auto vocabulary = checked_task(config).tokens(config);
  Words out;
  for (const std::int32_t token : tokens)
    out.push_back(token == kIgnore ? "." : vocabulary[static_cast<std::size_t>(token)]);
  return out;
}

// Calls f(input, answers, example) on many examples.
template <class F>
void for_samples(const TaskConfig& config, F f, std::uint64_t count = 2000) {
  Example e;
  for (std::uint64_t index = 0; index < count; ++index) {
    SampleRng draws(Random(5, Stream::data), index, 0);
    checked_task(config).sample(config, draws, e);
    const Words input = names(config, e.input), answers = names(config, e.target);
    INFO(fmt::format("{} -> {}", fmt::join(input, " "), fmt::join(answers, " ")));
    f(input, answers, e);
  }
}

// Removes innermost pairs, as ( ) or [ ], until there are none.
Words without_pairs(Words word) {
  for (std::size_t i = 1; i < word.size();) {
    const bool pair = std::string("([{<").find(word[i - 1]) < 4 &&
                      std::string("([{<").find(word[i - 1]) == std::string(")]}>").find(word[i]);
    if (!pair) {
      ++i;
      continue;
    }
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(i) - 1,
               word.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    i = 1;
  }
  return word;
}

bool is_opening(const std::string& token) { return token.find_first_of("([{<") == 0; }

// Checks distinct_inputs of a task with so few inputs that drawing finds them all.
void check_all_are_drawn(const TaskConfig& config, std::size_t expected) {
  std::set<Tokens> inputs;
  for_samples(
      config, [&](const Words&, const Words&, const Example& e) { inputs.insert(e.input); }, 30000);
  CHECK(inputs.size() == expected);
  CHECK(checked_task(config).distinct_inputs(config) == static_cast<double>(expected));
}

}  // namespace

TEST_CASE("shift: the end of the input wraps around to the start", "[data]") {
  for (const std::int64_t offset : {1, 3, 7, 20}) {
    const TaskConfig config{.name = "shift", .symbols = 9, .length = 7, .min_length = 1, .offset = offset};
    for_samples(config, [&](const Words& input, const Words& answers, const Example& e) {
      Words rotated = input;
      for (std::int64_t k = 0; k < offset; ++k) {
        rotated.insert(rotated.begin(), rotated.back());
        rotated.pop_back();
      }
      REQUIRE(answers == rotated);
      for (std::size_t i = 0; i < input.size(); ++i) {
        const auto places = static_cast<std::int64_t>(i) - offset, n = std::ssize(input);
        REQUIRE(relevant(config, e, i) == Tokens{static_cast<std::int32_t>((places % n + n) % n)});
      }
    });
  }
}

TEST_CASE("histogram: answers are counts, with tokens of their own", "[data]") {
  const TaskConfig config{.name = "histogram", .symbols = 3, .length = 5, .min_length = 1};
  CHECK(checked_task(config).tokens(config) == Words{"a", "b", "c", "1", "2", "3", "4", "5"});
  for_samples(config, [&](const Words& input, const Words& answers, const Example& e) {
    REQUIRE(answers.size() == input.size());
    for (std::size_t i = 0; i < input.size(); ++i) {
      Tokens same;
      for (std::size_t j = 0; j < input.size(); ++j)
        if (input[j] == input[i]) same.push_back(static_cast<std::int32_t>(j));
      REQUIRE(answers[i] == std::to_string(same.size()));
      REQUIRE(relevant(config, e, i) == same);
    }
  });
}

TEST_CASE("histogram: chance is that of the likeliest count", "[data]") {
  const auto chance = [](const TaskConfig& config) { return checked_task(config).chance(config); };
  // Two tokens of two symbols: alike or not.
  CHECK_THAT(chance({.name = "histogram", .symbols = 2, .length = 2}), WithinAbs(0.5, 1e-12));
  // Three: the other two differ from it with 4/9, one does with 4/9, none with 1/9.
  CHECK_THAT(chance({.name = "histogram", .symbols = 3, .length = 3}), WithinAbs(4.0 / 9, 1e-12));
  // Lengths 1 and 2: three questions in two inputs, count 1 is right for the first and for 3/4 of the others.
  CHECK_THAT(chance({.name = "histogram", .symbols = 4, .length = 2, .min_length = 1}),
             WithinAbs((1 + 2 * 0.75) / 3, 1e-12));
  CHECK_THAT(chance({.name = "histogram", .symbols = 2, .length = 8192}),
             WithinRel(1 / std::sqrt(std::acos(-1.0) * 8191 / 2), 1e-3));  // de Moivre and Laplace
}

TEST_CASE("majority: the most frequent symbol, of several the one that comes first", "[data]") {
  for (const std::int64_t symbols : {2, 3, 8}) {
    const TaskConfig config{.name = "majority", .symbols = symbols, .length = 7, .min_length = 1};
    for_samples(config, [&](const Words& input, const Words& answers, const Example& e) {
      REQUIRE(answers.size() == 1);
      const auto first = std::ranges::find(input, answers[0]);
      REQUIRE(first != input.end());
      const auto count = std::ranges::count(input, answers[0]);
      for (auto other = input.begin(); other != input.end(); ++other) {
        if (*other == answers[0]) continue;
        const auto others = std::ranges::count(input, *other);
        REQUIRE((others < count || (others == count && std::ranges::find(input, *other) > first)));
      }
      const Tokens keys = relevant(config, e, 0);
      REQUIRE(std::ssize(keys) == count);
      for (const std::int32_t key : keys) REQUIRE(input[static_cast<std::size_t>(key)] == answers[0]);
    });
  }
}

TEST_CASE("parity: whether there are 1, 3, 5, ... ones", "[data]") {
  const TaskConfig config{.name = "parity", .length = 7, .min_length = 1};
  for_samples(config, [&](const Words& input, const Words& answers, const Example& e) {
    bool odd = false;
    for (const std::string& bit : input)
      if (bit == "1") odd = !odd;
    REQUIRE(answers == Words{odd ? "1" : "0"});
    REQUIRE(relevant(config, e, 0).size() == input.size());
  });
  check_all_are_drawn(config, 2 + 4 + 8 + 16 + 32 + 64 + 128);
}

TEST_CASE("dyck_valid: yes as long as no closing bracket is wrong", "[data]") {
  for (const std::int64_t depth : {1, 2, 5}) {
    const TaskConfig config{
        .name = "dyck_valid", .symbols = 3, .length = 11, .min_length = 1, .depth = depth};
    for_samples(config, [&](const Words& input, const Words& answers, const Example& e) {
      REQUIRE(answers.size() == input.size());
      for (std::size_t i = 0; i < input.size(); ++i) {
        // A beginning can be continued if what is left without pairs only opens.
        const Words rest =
            without_pairs(Words(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(i) + 1));
        const bool valid = std::ranges::all_of(rest, is_opening);
        REQUIRE(answers[i] == (valid ? "yes" : "no"));
        if (valid) REQUIRE(std::ssize(rest) <= depth);
        REQUIRE(relevant(config, e, i).size() == i + 1);
      }
    });
  }
}

TEST_CASE("dyck_valid: the mistake is anywhere, or nowhere, alike", "[data]") {
  const TaskConfig config{.name = "dyck_valid", .symbols = 2, .length = 4};
  std::vector<double> mistakes(5);
  for_samples(
      config,
      [&](const Words&, const Words& answers, const Example&) {
        ++mistakes[static_cast<std::size_t>(std::ranges::find(answers, "no") - answers.begin())];
      },
      5000);
  for (const double count : mistakes) CHECK_THAT(count, WithinAbs(1000, 120));  // standard deviation 28
}

TEST_CASE("dyck_valid: brackets have readable names, however many", "[data]") {
  const auto tokens = [](std::int64_t symbols) {
    const TaskConfig config{.name = "dyck_valid", .symbols = symbols};
    return checked_task(config).tokens(config);
  };
  CHECK(tokens(4) == Words{"(", "[", "{", "<", ")", "]", "}", ">", "yes", "no"});
  CHECK(tokens(5) == Words{"(0", "(1", "(2", "(3", "(4", ")0", ")1", ")2", ")3", ")4", "yes", "no"});
}

TEST_CASE("dyck_match: the answer of a closing bracket is the bracket that it closes", "[data]") {
  for (const std::int64_t depth : {1, 2, 5}) {
    const TaskConfig config{
        .name = "dyck_match", .symbols = 4, .length = 10, .min_length = 2, .depth = depth};
    std::set<std::size_t> lengths;
    std::size_t deepest = 0;
    for_samples(config, [&](const Words& input, const Words& answers, const Example& e) {
      REQUIRE(answers.size() == input.size());
      lengths.insert(input.size());
      std::vector<std::size_t> open;
      for (std::size_t i = 0; i < input.size(); ++i) {
        if (input[i] != ")") {
          REQUIRE(answers[i] == ".");
          REQUIRE(relevant(config, e, i).empty());
          open.push_back(i);
          deepest = std::max(deepest, open.size());
          continue;
        }
        REQUIRE_FALSE(open.empty());
        REQUIRE(answers[i] == input[open.back()]);
        REQUIRE(relevant(config, e, i) == Tokens{static_cast<std::int32_t>(open.back())});
        open.pop_back();
      }
      REQUIRE(open.empty());
    });
    CHECK(lengths == std::set<std::size_t>{2, 4, 6, 8, 10});
    CHECK(deepest == static_cast<std::size_t>(depth));
  }
}

TEST_CASE("brackets: every word that there is gets drawn, and no more are counted", "[data]") {
  // Shapes of 6 brackets up to 2 deep: 4 of the 5; of 4: 2; of 2: 1.
  check_all_are_drawn({.name = "dyck_match", .symbols = 3, .length = 6, .min_length = 2, .depth = 2},
                      4 * 27 + 2 * 9 + 3);
  check_all_are_drawn({.name = "dyck_match", .symbols = 2, .length = 6, .depth = 9}, 5 * 8);
  // One bracket: 2 open, 2 are mistakes. Two: after one that opens (2), 2 open, 1 closes, 1 is a mistake;
  // after a mistake (2), 2 open. 8 + 4 in all.
  check_all_are_drawn({.name = "dyck_valid", .symbols = 2, .length = 2, .min_length = 1}, 4 + 12);
  // Up to 1 deep, nothing opens after an opening bracket.
  check_all_are_drawn({.name = "dyck_valid", .symbols = 2, .length = 2, .min_length = 1, .depth = 1}, 4 + 8);
}

TEST_CASE("keys that do not suit each other are refused with a remedy", "[data]") {
  const auto refused = [](const TaskConfig& config, const char* rule) {
    CHECK_THROWS_AS(checked_task(config), DataError);
    CHECK_THROWS_WITH(checked_task(config), ContainsSubstring(rule));
  };
  refused({.name = "dyck_match", .length = 7}, "task dyck_match: length 7: must be even");
  refused({.name = "dyck_match", .length = 8, .min_length = 3}, "min_length 3: must be even");
  refused({.name = "dyck_valid", .symbols = 1}, "task dyck_valid: symbols 1: ");
  refused({.name = "histogram", .symbols = 1}, "task histogram: symbols 1: ");
}

TEST_CASE("symbols are letters as long as there are letters", "[data]") {
  CHECK(tasks::letter_tokens({.symbols = 26}).back() == "z");
  CHECK(tasks::letter_tokens({.symbols = 27}).front() == "s0");
  CHECK(tasks::letter_tokens({.symbols = 27}).back() == "s26");
}
