#include <algorithm>
#include <cmath>
#include <set>

#include "catch.h"
#include "samples.h"
#include "thimble/engine/error.h"

using namespace thimble;
using namespace thimble::samples;

namespace {

const TaskConfig kMasked{.name = "masked", .symbols = 13, .length = 10};

// The sentence that was masked.
Tokens unmasked(const Example& e) {
  Tokens sentence = e.input;
  for (std::size_t i = 0; i < sentence.size(); ++i)
    if (e.target[i] != kIgnore) sentence[i] = e.target[i];
  return sentence;
}

double move_probability(std::int64_t symbols, std::int64_t from, std::int64_t to) {
  double p = 0;
  if (to == (from + 1) % symbols) p += 0.5;
  if (to == (from + 2) % symbols) p += 0.25;
  if (to == (from + 5) % symbols) p += 0.25;
  return p;
}

}  // namespace

TEST_CASE("masked hides some tokens, never two neighbors or an end, which are the answers", "[tasks]") {
  for (const auto& [length, masks] : {std::pair{3, 1}, {6, 1}, {10, 2}, {20, 3}, {50, 8}}) {
    TaskConfig config = kMasked;
    config.length = length;
    for (const Example& e : draw(config, 300)) {
      REQUIRE(std::ssize(e.input) == length);
      REQUIRE(e.target.size() == e.input.size());
      CHECK(std::ranges::count(e.input, 13) == masks);
      CHECK((e.input.front() != 13 && e.input.back() != 13));
      for (std::size_t i = 0; i < e.input.size(); ++i) {
        CHECK((e.input[i] == 13) == (e.target[i] != kIgnore));
        const auto at = static_cast<std::int32_t>(i);
        CHECK(relevant(config, e, i) == (e.input[i] == 13 ? Tokens{at - 1, at + 1} : Tokens{}));
        if (e.input[i] == 13) CHECK((e.input[i - 1] != 13 && e.input[i + 1] != 13));
      }
    }
  }
  CHECK(find_task("masked").tokens(kMasked).size() == 14);
  CHECK(find_task("masked").tokens(kMasked).back() == "[MASK]");
}

TEST_CASE("every choice of masked positions is as likely as any other", "[tasks]") {
  std::map<Tokens, double> choices;
  for (const Example& e : draw(kMasked, 21000)) {
    Tokens places;
    for (std::int32_t i = 0; i < 10; ++i)
      if (e.input[static_cast<std::size_t>(i)] == 13) places.push_back(i);
    ++choices[places];
  }
  CHECK(choices.size() == 21);  // two of eight positions that are not neighbors: 28 - 7
  for (const auto& [_, n] : choices) CHECK_THAT(n, WithinAbs(1000, 140));
}

TEST_CASE("the language of masked is the Markov chain of its definition", "[tasks]") {
  std::map<std::int32_t, double> first;
  std::map<std::pair<std::int32_t, std::int32_t>, double> moves;
  const int count = 20000;
  const auto examples = draw(kMasked, count);
  for (const Example& e : examples) {
    const Tokens sentence = unmasked(e);
    first[sentence[0]] += 13.0 / count;
    for (std::size_t i = 1; i < 10; ++i) moves[{sentence[i - 1], sentence[i]}] += 13.0 / 9 / count;
  }
  CHECK(first.size() == 13);
  for (const auto& [_, share] : first) CHECK_THAT(share, WithinAbs(1, 0.13));
  CHECK(moves.size() == 39);
  for (const auto& [move, share] : moves) {
    const double p = move_probability(13, move.first, move.second);
    CHECK(p > 0);
    CHECK_THAT(share, WithinAbs(p, 0.03));
  }
  const auto shares = answer_shares(examples);
  CHECK(shares.size() == 13);
  for (const auto& [_, share] : shares)
    CHECK_THAT(share, WithinAbs(find_task("masked").chance(kMasked), 0.006));
}

TEST_CASE("the floor of masked is the entropy of a token given its neighbors", "[tasks]") {
  for (const std::int64_t n : {5, 6, 7, 8, 9, 10, 11, 16, 40}) {
    double entropy = 0;
    for (std::int64_t a = 0; a < n; ++a) {
      for (std::int64_t c = 0; c < n; ++c) {
        double both = 0;
        for (std::int64_t b = 0; b < n; ++b) both += move_probability(n, a, b) * move_probability(n, b, c);
        for (std::int64_t b = 0; b < n; ++b) {
          const double p = move_probability(n, a, b) * move_probability(n, b, c);
          if (p > 0) entropy -= p / static_cast<double>(n) * std::log(p / both);
        }
      }
    }
    TaskConfig config = kMasked;
    config.symbols = n;
    CAPTURE(n);
    CHECK_THAT(find_task("masked").floor(config), WithinRel(entropy, 1e-12));
    if (n >= 11) CHECK_THAT(entropy, WithinRel(5.0 / 8 * std::log(2.0), 1e-12));
  }
}

TEST_CASE("masked counts its inputs", "[tasks]") {
  for (const std::int64_t n : {5, 7, 12}) {
    const TaskConfig config{.name = "masked", .symbols = n, .length = 5};  // one mask
    std::set<Tokens> all;
    for (std::int32_t first = 0; first < n; ++first) {
      for (int moves = 0; moves < 81; ++moves) {
        Tokens sentence = {first};
        for (int i = 0, rest = moves; i < 4; ++i, rest /= 3)
          sentence.push_back(static_cast<std::int32_t>((sentence.back() + (rest % 3 == 0   ? 1
                                                                           : rest % 3 == 1 ? 2
                                                                                           : 5)) %
                                                       n));
        for (const std::size_t hidden : {1U, 2U, 3U}) {
          Tokens input = sentence;
          input[hidden] = static_cast<std::int32_t>(n);
          all.insert(input);
        }
      }
    }
    CHECK(find_task("masked").distinct_inputs(config) == static_cast<double>(all.size()));
  }
  // Two masks: 21 choices; 13 first symbols; 5 moves between neighbors; 6 sums of two moves around each.
  CHECK(find_task("masked").distinct_inputs(kMasked) == 21 * 13 * 243.0 * 36);
}

TEST_CASE("masked refuses too few symbols or tokens", "[tasks]") {
  TaskConfig config{.name = "masked", .symbols = 4, .length = 3};
  CHECK_THROWS_AS(checked_task(config), DataError);
  CHECK_THROWS_WITH(checked_task(config), ContainsSubstring("masked: symbols 4: must be at least 5"));
  config.symbols = 5;
  CHECK_NOTHROW(checked_task(config));
  config.length = 2;
  CHECK_THROWS_WITH(checked_task(config), ContainsSubstring("masked: length 2: must be at least 3"));
}
