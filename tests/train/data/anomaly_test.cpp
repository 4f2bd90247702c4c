#include <algorithm>
#include <set>

#include "catch.h"
#include "samples.h"
#include "thimble/engine/error.h"

using namespace thimble;
using namespace thimble::samples;

namespace {

std::int64_t around(std::int64_t difference, std::int64_t side) {
  const std::int64_t d = (difference % side + side) % side;
  return std::min(d, side - d);
}

// The larger of the distances along both axes of a grid that wraps around.
std::int64_t distance(std::int64_t a, std::int64_t b, std::int64_t side) {
  return std::max(around(a % side - b % side, side), around(a / side - b / side, side));
}

}  // namespace

TEST_CASE("one point of an anomaly set is further from all others than these from each other", "[tasks]") {
  for (const std::int64_t side : {8, 9, 15, 16, 40}) {
    for (const std::int64_t length : {3, 10}) {
      const TaskConfig config{.name = "anomaly", .symbols = side * side, .length = length};
      CAPTURE(side, length);
      const std::int64_t widest = 2 * (side / 8);
      for (const Example& e : draw(config, 500)) {
        REQUIRE(std::ssize(e.input) == length);
        std::vector<std::size_t> odd;
        for (std::size_t i = 0; i < e.input.size(); ++i) {
          REQUIRE((e.input[i] >= 0 && e.input[i] < config.symbols));
          std::int64_t nearest = side, furthest = 0;
          for (std::size_t j = 0; j < e.input.size(); ++j) {
            if (i == j) continue;
            const std::int64_t d = distance(e.input[i], e.input[j], side);
            nearest = std::min(nearest, d);
            if (e.input[j] != e.target[0]) furthest = std::max(furthest, d);
          }
          if (nearest > widest)
            odd.push_back(i);
          else
            CHECK(furthest <= widest);
        }
        REQUIRE(odd.size() == 1);
        CHECK(e.target == Tokens{e.input[odd[0]]});
        CHECK(relevant(config, e, 0) == Tokens{static_cast<std::int32_t>(odd[0])});
      }
    }
  }
}

TEST_CASE("the odd point of an anomaly set is anywhere, at any place in the list", "[tasks]") {
  const TaskConfig config{.name = "anomaly", .symbols = 64, .length = 5};
  const auto examples = draw(config, 64000);
  const auto shares = answer_shares(examples);
  CHECK(shares.size() == 64);
  CHECK(find_task("anomaly").chance(config) == 1.0 / 64);
  for (const auto& [_, share] : shares) CHECK_THAT(share * 64000, WithinAbs(1000, 140));
  std::map<std::int32_t, double> places;
  for (const Example& e : examples) ++places[relevant(config, e, 0)[0]];
  CHECK(places.size() == 5);
  for (const auto& [_, n] : places) CHECK_THAT(n, WithinAbs(12800, 460));
}

TEST_CASE("the points of an anomaly set spread as their definition says", "[tasks]") {
  const TaskConfig config{.name = "anomaly", .symbols = 64 * 64, .length = 3};  // m = 8
  double squares[2] = {0, 0}, sums[2] = {0, 0};
  std::map<std::int64_t, double> odd_distances;
  const int count = 20000;
  for (const Example& e : draw(config, count)) {
    std::vector<std::int64_t> others;
    for (const std::int32_t token : e.input)
      if (token != e.target[0]) others.push_back(token);
    REQUIRE(others.size() == 2);
    for (const int axis : {0, 1}) {
      const std::int64_t scale = axis == 0 ? 1 : 64;
      const auto along = [&](std::int64_t a, std::int64_t b) {
        return static_cast<double>((a / scale % 64 - b / scale % 64 + 64 + 32) % 64 - 32);
      };
      const double d = along(others[0], others[1]);
      sums[axis] += d / count;
      squares[axis] += d * d / count;
    }
    ++odd_distances[distance(e.target[0], others[0], 64)];
  }
  for (const int axis : {0, 1}) {  // two points: twice the variance (8/3)^2, and 1/12 each for the rounding
    CHECK_THAT(squares[axis], WithinRel(2 * (64.0 / 9 + 1.0 / 12), 0.05));
    CHECK_THAT(sums[axis], WithinAbs(0, 0.12));
  }
  CHECK(odd_distances.begin()->first > 16);
  CHECK(odd_distances.rbegin()->first == 32);
}

TEST_CASE("anomaly counts its inputs", "[tasks][slow]") {
  for (const int side : {8, 11}) {
    const TaskConfig config{.name = "anomaly", .symbols = side * side, .length = 3};
    std::set<int> lists;  // three cells as one number; cells are below 128
    for (int center = 0; center < side * side; ++center) {
      std::vector<int> near, far;
      for (int other = 0; other < side * side; ++other) {
        const auto d = distance(center, other, side);
        if (d <= side / 8) near.push_back(other);
        if (8 * d > 3 * side) far.push_back(other);
      }
      CHECK(near.size() == 9);
      for (const int a : near)
        for (const int b : near)
          for (const int odd : far)
            lists.insert({a << 14 | b << 7 | odd, a << 14 | odd << 7 | b, odd << 14 | a << 7 | b});
    }
    CHECK_THAT(find_task("anomaly").distinct_inputs(config),
               WithinRel(static_cast<double>(lists.size()), 1e-12));
  }
}

TEST_CASE("anomaly refuses what is no square, and sets without an odd one", "[tasks]") {
  TaskConfig config{.name = "anomaly", .symbols = 80, .length = 3};
  CHECK_THROWS_AS(checked_task(config), DataError);
  CHECK_THROWS_WITH(checked_task(config), ContainsSubstring("anomaly: symbols 80: must be a square number"));
  config.symbols = 49;
  CHECK_THROWS_WITH(checked_task(config), ContainsSubstring("symbols 49"));
  config.symbols = 64;
  CHECK_NOTHROW(checked_task(config));
  config.length = 2;
  CHECK_THROWS_WITH(checked_task(config), ContainsSubstring("anomaly: length 2: must be at least 3"));
}
