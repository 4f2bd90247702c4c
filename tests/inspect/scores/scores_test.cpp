// Scores of heads, against a second implementation of the definitions.
#include "thimble/inspect/scores.h"

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "catch.h"
#include "scored_sequences.h"

using namespace scored;

namespace {

// Returns the target keys of a score; nullopt where the query is not eligible.
using TargetKeys =
    std::function<std::set<std::int64_t>(const ScoredSequence&, std::int64_t i, std::int64_t n)>;

HeadScore plain_target_score(const std::vector<ScoredSequence>& sequences, bool causal,
                             const TargetKeys& target) {
  HeadScore score;
  score.majority = 0;
  for (const ScoredSequence& s : sequences) {
    const std::int64_t n = std::ssize(s.tokens);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto keys = target(s, i, n);
      if (keys.empty()) continue;
      ++score.eligible;
      double seen = 0, own = 0;
      for (const std::int64_t j : keys) {
        if (j < 0 || j >= visible(i, n, causal)) continue;
        score.value += cell(s, i, j);
        own += cell(s, i, j);
        ++seen;
      }
      score.majority += own > 0.5 ? 1 : 0;
      score.chance += seen / static_cast<double>(visible(i, n, causal));
      score.attainable += seen > 0 ? 1 : 0;
    }
  }
  const auto queries = static_cast<double>(score.eligible);
  score.value /= queries;
  score.chance /= queries;
  score.attainable /= queries;
  score.majority /= queries;
  return score;
}

// Returns the mean of f(weights of query i on its visible keys, i, n) over the queries where f is not NaN.
using PlainScore = std::function<double(const Weights& row, std::int64_t i, std::int64_t n)>;

HeadScore plain_shape_score(const std::vector<ScoredSequence>& sequences, bool causal, const PlainScore& f) {
  HeadScore score;
  for (const ScoredSequence& s : sequences) {
    const std::int64_t n = std::ssize(s.tokens);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto keys = static_cast<std::size_t>(visible(i, n, causal));
      Weights row, uniform(keys, 1 / static_cast<double>(keys));
      for (std::int64_t j = 0; j < visible(i, n, causal); ++j) row.push_back(cell(s, i, j));
      if (std::isnan(f(uniform, i, n))) continue;
      ++score.eligible;
      score.value += f(row, i, n);
      score.chance += f(uniform, i, n);
      double most = -std::numeric_limits<double>::infinity();  // over distributions on one key, and uniform
      for (std::size_t j = 0; j < keys; ++j) {
        Weights one(keys, 0);
        one[j] = 1;
        most = std::max(most, f(one, i, n));
      }
      score.attainable += std::max(most, f(uniform, i, n));
    }
  }
  const auto queries = static_cast<double>(score.eligible);
  score.value /= queries;
  score.chance /= queries;
  score.attainable /= queries;
  return score;
}

void expect_same(const HeadScore& found, const HeadScore& expected) {
  INFO(found.name);
  CHECK(found.eligible == expected.eligible);
  REQUIRE(expected.eligible > 0);
  CHECK_THAT(found.value, WithinAbs(expected.value, 1e-12));
  CHECK_THAT(found.chance, WithinAbs(expected.chance, 1e-12));
  CHECK_THAT(found.attainable, WithinAbs(expected.attainable, 1e-12));
  CHECK(std::isnan(found.majority) == std::isnan(expected.majority));
  if (!std::isnan(expected.majority)) CHECK_THAT(found.majority, WithinAbs(expected.majority, 1e-12));
}

std::set<std::int64_t> key_if(bool condition, std::int64_t key) {
  return condition ? std::set<std::int64_t>{key} : std::set<std::int64_t>{};
}

template <class Condition>
std::set<std::int64_t> keys_where(std::int64_t n, const Condition& condition) {
  std::set<std::int64_t> keys;
  for (std::int64_t j = 0; j < n; ++j)
    if (condition(j)) keys.insert(j);
  return keys;
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("target scores are the summed weight on their keys", "[inspect]") {
  for (const bool causal : {false, true}) {
    const auto sequences = random_sequences(causal);
    const auto found = scores(sequences, causal);
    const auto check = [&](std::string_view name, const TargetKeys& target) {
      expect_same(find_score(found, name), plain_target_score(sequences, causal, target));
    };
    check("previous_token", [](auto&, auto i, auto) { return key_if(i >= 1, i - 1); });
    check("mirror", [](auto&, auto i, auto n) { return key_if(true, n - 1 - i); });
    check("same_token", [](const ScoredSequence& s, auto i, auto n) {
      return keys_where(n, [&](auto j) { return j != i && token(s, j) == token(s, i); });
    });
    check("duplicate_token", [](const ScoredSequence& s, auto i, auto) {
      return keys_where(i, [&](auto j) { return token(s, j) == token(s, i); });
    });
    check("induction", [](const ScoredSequence& s, auto i, auto) {
      return keys_where(i + 1, [&](auto j) { return j >= 1 && token(s, j - 1) == token(s, i); });
    });
    check("task_target", [](const ScoredSequence& s, auto i, auto n) {
      return keys_where(n, [&](auto j) {
        for (const auto& alignment : s.alignments)
          if (alignment.query == i && alignment.key == j) return true;
        return false;
      });
    });
    check("self", [](auto&, auto i, auto) { return key_if(true, i); });
    check("first", [](auto&, auto, auto) { return key_if(true, 0); });
    check("special", [causal](const ScoredSequence& s, auto i, auto n) {
      return keys_where(visible(i, n, causal), [&](auto j) { return token(s, j) == kMark; });
    });
    if (causal) {
      expect_undefined(find_score(found, "next_token"));
    } else {
      check("next_token", [](auto&, auto i, auto n) { return key_if(i + 1 < n, i + 1); });
    }
  }
}

TEST_CASE("entropy is relative to the visible keys, distances count positions", "[inspect]") {
  for (const bool causal : {false, true}) {
    const auto sequences = random_sequences(causal);
    const auto found = scores(sequences, causal);
    const auto check = [&](std::string_view name, const PlainScore& f) {
      expect_same(find_score(found, name), plain_shape_score(sequences, causal, f));
    };
    check("entropy", [](const Weights& row, auto, auto) {
      double h = 0;
      for (const double w : row)
        if (w > 0) h -= w * std::log(w);
      return row.size() == 1 ? kNaN : h / std::log(static_cast<double>(row.size()));
    });
    const auto mean_distance = [](const Weights& row, std::int64_t i, const auto& f) {
      double sum = 0;
      for (std::int64_t j = 0; j < std::ssize(row); ++j) sum += row[static_cast<std::size_t>(j)] * f(j - i);
      return sum;
    };
    check("distance", [&](const Weights& row, auto i, auto) {
      return mean_distance(row, i, [](auto d) { return static_cast<double>(std::abs(d)); });
    });
    check("signed_distance", [&](const Weights& row, auto i, auto) {
      return mean_distance(row, i, [](auto d) { return static_cast<double>(d); });
    });
  }
}

TEST_CASE("the best offset and position are furthest above chance", "[inspect]") {
  for (const bool causal : {false, true}) {
    const auto sequences = random_sequences(causal);
    const auto found = scores(sequences, causal);
    const auto queries = find_score(found, "mirror").eligible;
    HeadScore best_offset, best_position;
    for (std::int64_t k = 1 - kTime; k < kTime; ++k) {
      HeadScore offset = plain_target_score(
          sequences, causal, [k](auto&, auto i, auto n) { return key_if(i + k >= 0 && i + k < n, i + k); });
      offset.at = k;
      if (20 * offset.eligible < 9 * queries || offset.attainable == 0) continue;
      if (!best_offset.at || offset.value - offset.chance > best_offset.value - best_offset.chance)
        best_offset = offset;
    }
    for (std::int64_t k = 0; k < kTime; ++k) {
      HeadScore position = plain_target_score(
          sequences, causal, [k](auto&, auto, auto n) { return key_if(true, k < n ? k : -1); });
      position.at = k;
      if (!best_position.at || position.value - position.chance > best_position.value - best_position.chance)
        best_position = position;
    }
    expect_same(find_score(found, "offset"), best_offset);
    CHECK(find_score(found, "offset").at == best_offset.at);
    expect_same(find_score(found, "absolute_position"), best_position);
    CHECK(find_score(found, "absolute_position").at == best_position.at);
  }
}

TEST_CASE("the positional share is the share of variance that positions explain", "[inspect]") {
  for (const bool causal : {false, true}) {
    const auto sequences = random_sequences(causal);
    double above = 0, below = 0, queries = 0;
    for (std::int64_t i = 0; i < kTime; ++i)
      for (std::int64_t j = 0; j < kTime; ++j) {
        double sum = 0, squares = 0, count = 0;
        for (const ScoredSequence& s : sequences) {
          const std::int64_t length = std::ssize(s.tokens);
          if (length <= std::max(i, j)) continue;
          ++count;
          const std::int64_t keys = visible(i, length, causal);
          const double excess = j < keys ? cell(s, i, j) - 1 / static_cast<double>(keys) : 0;
          sum += excess;
          squares += excess * excess;
        }
        REQUIRE(count >= 12);
        above += sum * sum / count;
        below += squares;
        if (j == 0) queries += count;
      }
    const HeadScore share = find_score(scores(sequences, causal), "positional_share");
    CHECK_THAT(share.value, WithinAbs(above / below, 1e-12));
    CHECK(share.value < 0.9);
    CHECK(share.attainable == 1);
    CHECK(std::isnan(share.chance));
    CHECK(static_cast<double>(share.eligible) == queries);
  }
}

TEST_CASE("the strength of a score is 0 at chance, and 1 where all queries that can have the pattern",
          "[inspect]") {
  CHECK(strength(0.25, 0.25, 0.75) == 0);
  CHECK(strength(0.5, 0.25, 0.75) == 0.5);
  CHECK(strength(0.75, 0.25, 0.75) == 1);
  CHECK(strength(0, 0.25, 0.75) == -0.5);
  CHECK(strength(0.5, 0.5, 0.5) == 0);
  CHECK(strength(std::numeric_limits<double>::quiet_NaN(), 0.25, 0.75) == 0);
}
