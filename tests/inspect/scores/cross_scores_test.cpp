// Scores of cross-attention, against a second implementation of the definitions.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "catch.h"
#include "thimble/engine/error.h"
#include "thimble/engine/random.h"
#include "thimble/inspect/scores.h"

using namespace thimble;

namespace {

constexpr std::int64_t kQueries = 5, kKeys = 8;
constexpr std::int32_t kSpecial = 9;

struct Pair {
  std::int64_t queries;
  std::vector<std::int32_t> source;
  std::vector<Alignment> alignments;
  std::vector<double> weights;  // (kQueries, kKeys), -1 where reading is an error

  std::int64_t keys() const { return std::ssize(source); }
  double at(std::int64_t i, std::int64_t j) const { return weights[static_cast<std::size_t>(i * kKeys + j)]; }
};

// Returns pairs of many sizes, with more queries than keys and fewer, a third of full length.
std::vector<Pair> random_pairs() {
  SampleRng draws(Random(6, Stream::data), 0, 0);
  std::vector<Pair> pairs;
  for (int s = 0; s < 30; ++s) {
    const bool full = s % 3 == 0;
    Pair pair{full ? kQueries : 1 + draws.below(kQueries), {}, {}, std::vector<double>(kQueries * kKeys, -1)};
    const std::int64_t keys = full ? kKeys : 1 + draws.below(kKeys);
    for (std::int64_t j = 0; j < keys; ++j)
      pair.source.push_back(draws.below(4) == 0 ? kSpecial : static_cast<std::int32_t>(draws.below(3)));
    for (std::int64_t i = 0; i < pair.queries; ++i) {
      double* row = pair.weights.data() + i * kKeys;
      double sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) sum += row[j] = 1 + static_cast<double>(draws.below(5));
      for (std::int64_t j = 0; j < keys; ++j) row[j] /= sum;
      if (i % 2 == 0)
        pair.alignments.push_back(
            {static_cast<std::int32_t>(i), static_cast<std::int32_t>(draws.below(keys))});
    }
    pairs.push_back(pair);
  }
  return pairs;
}

std::vector<HeadScore> scores(const std::vector<Pair>& pairs) {
  HeadScorer scorer = HeadScorer::cross(kQueries, kKeys);
  const std::vector<std::int32_t> special = {kSpecial};
  for (const Pair& p : pairs)
    scorer.add(ScoreTargets::cross(p.queries, p.source, {p.alignments}, special), p.weights);
  return scorer.scores();
}

// Returns the mean weight on the keys j with target(pair, i, j), over the queries i that have one.
using CrossTarget = std::function<bool(const Pair&, std::int64_t i, std::int64_t j)>;

void expect(const HeadScore& found, const std::vector<Pair>& pairs, const CrossTarget& target) {
  double value = 0, chance = 0, eligible = 0;
  for (const Pair& p : pairs) {
    for (std::int64_t i = 0; i < p.queries; ++i) {
      double targets = 0;
      for (std::int64_t j = 0; j < p.keys(); ++j) {
        if (!target(p, i, j)) continue;
        value += p.at(i, j);
        ++targets;
      }
      chance += targets / static_cast<double>(p.keys());
      eligible += targets > 0;
    }
  }
  INFO(found.name);
  REQUIRE(eligible > 0);
  CHECK(static_cast<double>(found.eligible) == eligible);
  CHECK_THAT(found.value, WithinAbs(value / eligible, 1e-12));
  CHECK_THAT(found.chance, WithinAbs(chance / eligible, 1e-12));
  CHECK_THAT(found.attainable, WithinAbs(1, 1e-12));
}

// Puts all attention of query i on key(i) where that is a key, otherwise on key 0.
std::vector<Pair> sharp_pairs(const std::function<std::int64_t(const Pair&, std::int64_t)>& key) {
  std::vector<Pair> pairs = random_pairs();
  for (Pair& p : pairs) {
    for (std::int64_t i = 0; i < p.queries; ++i) {
      const std::int64_t j = key(p, i);
      double* row = p.weights.data() + i * kKeys;
      std::fill_n(row, p.keys(), 0);
      row[j >= 0 && j < p.keys() ? j : 0] = 1;
    }
  }
  return pairs;
}

}  // namespace

TEST_CASE("scores between two sequences are those of their positions", "[inspect]") {
  const std::vector<Pair> pairs = random_pairs();
  const std::vector<HeadScore> found = scores(pairs);
  expect(find_score(found, "mirror"), pairs,
         [](const Pair& p, auto i, auto j) { return j == p.keys() - 1 - i; });
  expect(find_score(found, "first"), pairs, [](const Pair&, auto, auto j) { return j == 0; });
  expect(find_score(found, "special"), pairs,
         [](const Pair& p, auto, auto j) { return p.source[static_cast<std::size_t>(j)] == kSpecial; });
  expect(find_score(found, "task_target"), pairs, [](const Pair& p, auto i, auto j) {
    return std::ranges::any_of(p.alignments, [&](auto& l) { return l.query == i && l.key == j; });
  });
}

TEST_CASE("distances and entropy between two sequences", "[inspect]") {
  const std::vector<Pair> pairs = random_pairs();
  const std::vector<HeadScore> found = scores(pairs);
  double queries = 0, distance = 0, signed_distance = 0, furthest = 0, last = 0, entropy = 0, several = 0;
  for (const Pair& p : pairs) {
    for (std::int64_t i = 0; i < p.queries; ++i, ++queries) {
      double h = 0, most = 0;
      for (std::int64_t j = 0; j < p.keys(); ++j) {
        const auto way = static_cast<double>(j - i);
        distance += p.at(i, j) * std::abs(way);
        signed_distance += p.at(i, j) * way;
        most = std::max(most, std::abs(way));
        h -= p.at(i, j) * std::log(p.at(i, j));
      }
      furthest += most;
      last += static_cast<double>(p.keys() - 1 - i);
      if (p.keys() == 1) continue;
      entropy += h / std::log(static_cast<double>(p.keys()));
      ++several;
    }
  }
  CHECK(static_cast<double>(find_score(found, "distance").eligible) == queries);
  CHECK_THAT(find_score(found, "distance").value, WithinAbs(distance / queries, 1e-12));
  CHECK_THAT(find_score(found, "distance").attainable, WithinAbs(furthest / queries, 1e-12));
  CHECK_THAT(find_score(found, "signed_distance").value, WithinAbs(signed_distance / queries, 1e-12));
  CHECK_THAT(find_score(found, "signed_distance").attainable, WithinAbs(last / queries, 1e-12));
  CHECK(static_cast<double>(find_score(found, "entropy").eligible) == several);
  CHECK_THAT(find_score(found, "entropy").value, WithinAbs(entropy / several, 1e-12));
}

TEST_CASE("a fixed offset or position of the source is found", "[inspect]") {
  const auto at_offset = scores(sharp_pairs([](const Pair&, auto i) { return i + 2; }));
  CHECK(find_score(at_offset, "offset").at == 2);
  CHECK_THAT(find_score(at_offset, "offset").value, WithinAbs(1, 1e-12));
  const auto at_place = scores(sharp_pairs([](const Pair&, auto) { return 1; }));
  CHECK(find_score(at_place, "absolute_position").at == 1);
  const auto mirrored = scores(sharp_pairs([](const Pair& p, auto i) { return p.keys() - 1 - i; }));
  CHECK_THAT(find_score(mirrored, "mirror").value, WithinAbs(1, 1e-12));
}

TEST_CASE("an offset of few queries does not describe a cross head", "[inspect]") {
  HeadScorer scorer = HeadScorer::cross(5, 2);
  std::vector<double> weights(10, 0.5);
  scorer.add(ScoreTargets::cross(5, std::vector<std::int32_t>{0, 1}, {}), weights);
  CHECK(find_score(scorer.scores(), "offset").eligible == 0);
  CHECK(find_score(scorer.scores(), "mirror").eligible == 2);
}

TEST_CASE("scores that refer to the query's own sequence are undefined", "[inspect]") {
  for (const char* name :
       {"self", "previous_token", "next_token", "same_token", "duplicate_token", "induction"}) {
    const std::vector<HeadScore> found = scores(random_pairs());
    INFO(name);
    CHECK(find_score(found, name).eligible == 0);
    CHECK(std::isnan(find_score(found, name).value));
  }
}

TEST_CASE("mean weights and positional share are of the pairs that have the query and the key", "[inspect]") {
  std::vector<Pair> pairs = random_pairs();
  HeadScorer scorer = HeadScorer::cross(kQueries, kKeys);
  for (const Pair& p : pairs) scorer.add(ScoreTargets::cross(p.queries, p.source, {}), p.weights);
  const std::vector<double> found = scorer.weights().means().from_start;
  const std::vector<std::int64_t> counts = scorer.weights().counts();
  REQUIRE(found.size() == kQueries * kKeys);
  double of_means = 0, squares = 0, queries = 0;
  for (std::int64_t i = 0; i < kQueries; ++i)
    for (std::int64_t j = 0; j < kKeys; ++j) {
      const auto cell = static_cast<std::size_t>(i * kKeys + j);
      double sum = 0, excess = 0, its_squares = 0, count = 0;
      for (const Pair& p : pairs) {
        if (p.queries <= i || p.keys() <= j) continue;
        const double above = p.weights[cell] - 1.0 / static_cast<double>(p.keys());
        sum += p.weights[cell];
        excess += above;
        its_squares += above * above;
        ++count;
      }
      CAPTURE(i, j, count);
      CHECK(static_cast<double>(counts[cell]) == count);
      if (count > 0)
        CHECK_THAT(found[cell], WithinAbs(sum / count, 1e-12));
      else
        CHECK(std::isnan(found[cell]));
      if (count < 2) continue;
      of_means += excess * excess / count;
      squares += its_squares;
      if (j == 0) queries += count;
    }
  REQUIRE((std::ranges::max(counts) == std::ssize(pairs) && counts.back() > 1 && counts.back() < 20));
  const HeadScore share = find_score(scorer.scores(), "positional_share");
  CHECK_THAT(share.value, WithinAbs(of_means / squares, 1e-12));
  CHECK(static_cast<double>(share.eligible) == queries);
}

TEST_CASE("a scorer refuses weights of other sizes, and targets of another visibility", "[inspect]") {
  HeadScorer scorer = HeadScorer::cross(2, 3);
  const std::vector<std::int32_t> source = {0, 1, 2};
  const std::vector<double> weights(6, 1.0 / 3);
  CHECK_NOTHROW(scorer.add(ScoreTargets::cross(2, source, {}), weights));
  CHECK_THROWS_AS(scorer.add(ScoreTargets::cross(3, source, {}), weights), ShapeError);
  CHECK_THROWS_AS(scorer.add(ScoreTargets::cross(2, source, {}), std::vector<double>(9, 1.0 / 3)),
                  ShapeError);
  CHECK_THROWS_AS(HeadScorer::cross(3, 2).add(ScoreTargets::cross(2, source, {}), weights), ShapeError);
  CHECK_THROWS_AS(
      HeadScorer(3, false).add(ScoreTargets::cross(3, source, {}), std::vector<double>(9, 1.0 / 3)),
      ShapeError);
  const std::vector<Alignment> query{{2, 0}}, key{{0, 3}}, neither{{1, 2}};
  CHECK_THROWS_AS(ScoreTargets::cross(2, source, {query}), ShapeError);
  CHECK_THROWS_AS(ScoreTargets::cross(2, source, {key}), ShapeError);
  CHECK_NOTHROW(ScoreTargets::cross(2, source, {neither}));
}
