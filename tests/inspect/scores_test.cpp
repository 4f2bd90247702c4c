// Scores of heads, against the definitions computed a second time, sequence by sequence and score by score.
#include "thimble/inspect/scores.h"

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "thimble/core/error.h"
#include "thimble/core/random.h"

using namespace thimble;

namespace {

using Tokens = std::vector<std::int32_t>;
using Links = std::vector<Dataset::Link>;
using Weights = std::vector<double>;  // (T, T)

constexpr std::int64_t kTime = 7;
constexpr std::int32_t kMark = 9;  // the special token

struct Sequence {
  Tokens tokens;
  Links links;
  Weights weights;
};

std::int64_t visible(std::int64_t i, std::int64_t n, bool causal) { return causal ? i + 1 : n; }

double cell(const Sequence& s, std::int64_t i, std::int64_t j) {
  return s.weights[static_cast<std::size_t>(i * kTime + j)];
}

std::int32_t token(const Sequence& s, std::int64_t i) { return s.tokens[static_cast<std::size_t>(i)]; }

// Weights on the visible keys that add up to 1, some of them 0; -1 in cells that nobody may read.
Weights random_weights(std::int64_t n, bool causal, Draws& draws) {
  Weights weights(kTime * kTime, -1);
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    double* row = weights.data() + i * kTime;
    for (std::int64_t j = 0; j < visible(i, n, causal); ++j) {
      row[j] = static_cast<double>(draws.below(5)) + (j == 0 ? 1 : 0);
      sum += row[j];
    }
    for (std::int64_t j = 0; j < visible(i, n, causal); ++j) row[j] /= sum;
  }
  return weights;
}

// Of different lengths, half of them full, with repeated tokens, special ones and links, some of them twice.
std::vector<Sequence> random_sequences(bool causal) {
  Draws draws(Random(5, Stream::data), 0, causal ? 1 : 0);
  std::vector<Sequence> out;
  for (int s = 0; s < 24; ++s) {
    const std::int64_t n = s % 2 == 0 ? kTime : 1 + draws.below(kTime);
    Sequence sequence;
    for (std::int64_t i = 0; i < n; ++i)
      sequence.tokens.push_back(draws.below(6) == 0 ? kMark : static_cast<std::int32_t>(draws.below(3)));
    for (std::int64_t l = 0; l < n; ++l)
      sequence.links.push_back(
          {static_cast<std::int32_t>(draws.below(n)), static_cast<std::int32_t>(draws.below(n))});
    sequence.links.push_back(sequence.links.front());
    sequence.weights = random_weights(n, causal, draws);
    out.push_back(sequence);
  }
  return out;
}

std::vector<HeadScore> scores(const std::vector<Sequence>& sequences, bool causal) {
  HeadScorer scorer(kTime, causal);
  const std::vector<std::int32_t> special = {kMark};
  for (const Sequence& s : sequences) scorer.add(ScoreTargets(s.tokens, causal, s.links, special), s.weights);
  return scorer.scores();
}

// The keys that a score asks for; nothing where the query is not eligible.
using Target = std::function<std::set<std::int64_t>(const Sequence&, std::int64_t i, std::int64_t n)>;

HeadScore plain_target_score(const std::vector<Sequence>& sequences, bool causal, const Target& target) {
  HeadScore score;
  for (const Sequence& s : sequences) {
    const std::int64_t n = std::ssize(s.tokens);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto keys = target(s, i, n);
      if (keys.empty()) continue;
      ++score.eligible;
      double seen = 0;
      for (const std::int64_t j : keys) {
        if (j < 0 || j >= visible(i, n, causal)) continue;
        score.value += cell(s, i, j);
        ++seen;
      }
      score.chance += seen / static_cast<double>(visible(i, n, causal));
      score.attainable += seen > 0 ? 1 : 0;
    }
  }
  const auto queries = static_cast<double>(score.eligible);
  score.value /= queries;
  score.chance /= queries;
  score.attainable /= queries;
  return score;
}

// The mean of f(weights of a query on its visible keys, i, n) over the queries where f is a number.
using Shape = std::function<double(const Weights& row, std::int64_t i, std::int64_t n)>;

HeadScore plain_shape_score(const std::vector<Sequence>& sequences, bool causal, const Shape& f) {
  HeadScore score;
  for (const Sequence& s : sequences) {
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
}

void expect_undefined(const HeadScore& score) {
  INFO(score.name);
  CHECK(score.eligible == 0);
  CHECK(std::isnan(score.value));
  CHECK(std::isnan(score.chance));
  CHECK(std::isnan(score.attainable));
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

// Cells of row i, sequences of n tokens, that get all the weight.
Weights one_hot(std::int64_t n, const std::function<std::int64_t(std::int64_t)>& key) {
  Weights weights(kTime * kTime, 0);
  for (std::int64_t i = 0; i < n; ++i) weights[static_cast<std::size_t>(i * kTime + key(i))] = 1;
  return weights;
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("target scores are the summed weight on their keys", "[inspect]") {
  for (const bool causal : {false, true}) {
    const auto sequences = random_sequences(causal);
    const auto found = scores(sequences, causal);
    const auto check = [&](std::string_view name, const Target& target) {
      expect_same(find_score(found, name), plain_target_score(sequences, causal, target));
    };
    check("previous_token", [](auto&, auto i, auto) { return key_if(i >= 1, i - 1); });
    check("mirror", [](auto&, auto i, auto n) { return key_if(true, n - 1 - i); });
    check("same_token", [](const Sequence& s, auto i, auto n) {
      return keys_where(n, [&](auto j) { return j != i && token(s, j) == token(s, i); });
    });
    check("duplicate_token", [](const Sequence& s, auto i, auto) {
      return keys_where(i, [&](auto j) { return token(s, j) == token(s, i); });
    });
    check("induction", [](const Sequence& s, auto i, auto) {
      return keys_where(i + 1, [&](auto j) { return j >= 1 && token(s, j - 1) == token(s, i); });
    });
    check("task_target", [](const Sequence& s, auto i, auto n) {
      return keys_where(n, [&](auto j) {
        for (const auto& link : s.links)
          if (link.query == i && link.key == j) return true;
        return false;
      });
    });
    check("self", [](auto&, auto i, auto) { return key_if(true, i); });
    check("previous", [](auto&, auto i, auto) { return key_if(i >= 1, i - 1); });
    check("first", [](auto&, auto, auto) { return key_if(true, 0); });
    check("special", [causal](const Sequence& s, auto i, auto n) {
      return keys_where(visible(i, n, causal), [&](auto j) { return token(s, j) == kMark; });
    });
    if (causal) {
      expect_undefined(find_score(found, "next"));
      expect_undefined(find_score(found, "next_token"));
    } else {
      check("next", [](auto&, auto i, auto n) { return key_if(i + 1 < n, i + 1); });
      check("next_token", [](auto&, auto i, auto n) { return key_if(i + 1 < n, i + 1); });
    }
  }
}

TEST_CASE("entropy is relative to the keys that a query sees, distances count positions", "[inspect]") {
  for (const bool causal : {false, true}) {
    const auto sequences = random_sequences(causal);
    const auto found = scores(sequences, causal);
    const auto check = [&](std::string_view name, const Shape& f) {
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
      if (2 * offset.eligible < queries || offset.attainable == 0) continue;
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

TEST_CASE("an offset that few queries have does not describe a head", "[inspect]") {
  // Query 0 of a mirror head looks 6 ahead, all of it; but that is one query of seven.
  const Tokens tokens = {0, 1, 2, 3, 4, 5, 6};
  const auto found =
      scores({{tokens, {}, one_hot(kTime, [](std::int64_t i) { return kTime - 1 - i; })}}, false);
  CHECK(find_score(found, "mirror").value == 1);
  CHECK(find_score(found, "offset").value < 0.3);
}

TEST_CASE("the positional share is the part of the variance that position explains", "[inspect]") {
  for (const bool causal : {false, true}) {
    const auto sequences = random_sequences(causal);
    double above = 0, below = 0, count = 0;
    Weights mean(kTime * kTime, 0);
    for (const Sequence& s : sequences) {
      if (std::ssize(s.tokens) != kTime) continue;
      ++count;
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += s.weights[i];
    }
    REQUIRE(count >= 12);
    for (std::int64_t i = 0; i < kTime; ++i) {
      const std::int64_t keys = visible(i, kTime, causal);
      for (std::int64_t j = 0; j < keys; ++j) {
        const double u = 1 / static_cast<double>(keys);
        above += std::pow(mean[static_cast<std::size_t>(i * kTime + j)] / count - u, 2);
        for (const Sequence& s : sequences)
          if (std::ssize(s.tokens) == kTime) below += std::pow(cell(s, i, j) - u, 2) / count;
      }
    }
    const HeadScore share = find_score(scores(sequences, causal), "positional_share");
    CHECK_THAT(share.value, WithinAbs(above / below, 1e-12));
    CHECK(share.value < 0.9);
    CHECK(share.attainable == 1);
    CHECK(std::isnan(share.chance));
    CHECK(share.eligible == static_cast<std::int64_t>(count) * kTime);
  }
}

TEST_CASE("the positional share is 1 for a fixed pattern, 0 for none, and undefined for a uniform head",
          "[inspect]") {
  const Tokens tokens = {0, 1, 2, 3, 4, 5, 6};
  const auto share = [&](const std::vector<Weights>& all) {
    std::vector<Sequence> sequences;
    for (const Weights& weights : all) sequences.push_back({tokens, {}, weights});
    return find_score(scores(sequences, false), "positional_share");
  };
  const Weights fixed = one_hot(kTime, [](std::int64_t i) { return i / 2; });
  CHECK_THAT(share({fixed, fixed}).value, WithinAbs(1, 1e-12));
  std::vector<Weights> everywhere;  // every key once
  for (std::int64_t k = 0; k < kTime; ++k)
    everywhere.push_back(one_hot(kTime, [k](std::int64_t i) { return (i + k) % kTime; }));
  CHECK_THAT(share(everywhere).value, WithinAbs(0, 1e-12));
  // As a softmax of floats leaves them.
  const Weights uniform(kTime * kTime, static_cast<double>(1.0F / static_cast<float>(kTime)));
  expect_undefined(share({uniform, uniform}));
  expect_undefined(share({fixed}));  // one input says nothing
}

TEST_CASE("a head that does one thing has that score at 1", "[inspect]") {
  const Tokens tokens = {3, 1, 2, 3, 1, 2, 3};
  const auto value = [&](std::string_view name, bool causal, const Links& links, auto key) {
    return find_score(scores({{tokens, links, one_hot(kTime, key)}}, causal), name);
  };
  const auto clamp = [](std::int64_t j) { return std::max<std::int64_t>(0, j); };
  CHECK(value("previous_token", true, {}, [&](auto i) { return clamp(i - 1); }).value == 1);
  CHECK(value("next_token", false, {}, [](auto i) { return (i + 1) % kTime; }).value == 1);
  CHECK(value("mirror", false, {}, [](auto i) { return kTime - 1 - i; }).value == 1);
  CHECK(value("same_token", false, {}, [](auto i) { return (i + 3) % 6; }).value == 1);
  CHECK(value("duplicate_token", true, {}, [&](auto i) { return clamp(i - 3); }).value == 1);
  CHECK(value("task_target", true, {{5, 2}, {6, 0}}, [](auto i) { return i == 5 ? 2 : 0; }).value == 1);
  const HeadScore offset = value("offset", false, {}, [](auto i) { return (i + 2) % kTime; });
  CHECK(offset.value == 1);
  CHECK(offset.at == 2);
  const HeadScore position = value("absolute_position", false, {}, [](auto) { return 4; });
  CHECK(position.value == 1);
  CHECK(position.at == 4);
  CHECK_THAT(position.chance, WithinAbs(1.0 / kTime, 1e-15));
  // Half of the mirrored positions are ahead, where a causal mask hides them; the middle is itself.
  const HeadScore mirror = value("mirror", true, {}, [](auto i) { return std::min(i, kTime - 1 - i); });
  CHECK_THAT(mirror.value, WithinAbs(4.0 / kTime, 1e-12));
  CHECK_THAT(mirror.attainable, WithinAbs(4.0 / kTime, 1e-12));
}

TEST_CASE("induction is what followed the same token before: in r r of period N key i - N + 1", "[inspect]") {
  const Tokens tokens = {3, 1, 2, 3, 1, 2, 3};
  const auto look_back = [&](std::int64_t distance) {
    const Weights weights = one_hot(kTime, [&](auto i) { return std::max<std::int64_t>(0, i - distance); });
    return find_score(scores({{tokens, {}, weights}}, true), "induction");
  };
  // The last query, 3 at position 6, has two keys, 1 and 4.
  CHECK(look_back(2).value == 1);
  CHECK(look_back(2).eligible == 4);
  CHECK(look_back(3).value == 0);
  CHECK(look_back(1).value == 0);
  CHECK_THAT(look_back(2).chance, WithinAbs((1.0 / 4 + 1.0 / 5 + 1.0 / 6 + 2.0 / 7) / 4, 1e-12));
  // After a token that comes twice in a row, the key is the query's own.
  const Weights weights = one_hot(2, [](auto i) { return i; });
  CHECK(find_score(scores({{{5, 5}, {}, weights}}, true), "induction").value == 1);
}

TEST_CASE("a uniform head is at chance everywhere, and its entropy is 1 under every mask", "[inspect]") {
  for (const bool causal : {false, true}) {
    auto sequences = random_sequences(causal);
    for (Sequence& s : sequences) {
      const std::int64_t n = std::ssize(s.tokens);
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < visible(i, n, causal); ++j)
          s.weights[static_cast<std::size_t>(i * kTime + j)] = 1 / static_cast<double>(visible(i, n, causal));
    }
    for (const HeadScore& score : scores(sequences, causal)) {
      INFO(score.name);
      if (score.eligible > 0) CHECK_THAT(score.value, WithinAbs(score.chance, 1e-12));
    }
    CHECK_THAT(find_score(scores(sequences, causal), "entropy").value, WithinAbs(1, 1e-12));
  }
}

TEST_CASE("a score that nothing can say anything about is undefined, null in JSON", "[inspect]") {
  const Tokens tokens = {0, 1, 2, 3, 4, 5, 6};
  auto found = scores({{tokens, {}, one_hot(kTime, [](auto i) { return i; })}}, true);
  for (const auto* name : {"special", "same_token", "duplicate_token", "induction", "task_target", "next"})
    expect_undefined(find_score(found, name));
  auto initial = found;
  for (HeadScore& score : initial) score.value = 0.25;
  set_at_init(found, initial);
  const nlohmann::ordered_json json = to_json(found);
  CHECK(json["special"].dump() ==
        R"({"value":null,"chance":null,"at_init":0.25,"attainable":null,"eligible":0})");
  CHECK(json["self"].dump() == nlohmann::ordered_json({{"value", 1.0},
                                                       {"chance", find_score(found, "self").chance},
                                                       {"at_init", 0.25},
                                                       {"attainable", 1.0},
                                                       {"eligible", 7}})
                                   .dump());
  CHECK(json["offset"]["at"] == 0);
  std::vector<std::string> names;
  for (const auto& [name, score] : json.items()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"entropy", "distance", "signed_distance", "self", "previous",
                                          "next", "first", "special", "positional_share", "previous_token",
                                          "next_token", "mirror", "offset", "same_token", "duplicate_token",
                                          "induction", "absolute_position", "task_target"});
  CHECK_THROWS_AS(find_score(found, "mirrors"), Error);
  for (const HeadScore& score : HeadScorer(kTime, false).scores()) expect_undefined(score);
  CHECK(to_json(HeadScorer(kTime, false).scores())["entropy"]["at_init"].is_null());
}

TEST_CASE("mean weights are those of full sequences", "[inspect]") {
  HeadScorer scorer(kTime, false);
  CHECK(scorer.mean_weights() == Weights(kTime * kTime, 0));
  const Tokens full = {0, 1, 2, 3, 4, 5, 6}, part = {0, 1};
  const auto first = one_hot(kTime, [](auto) { return 0; }),
             second = one_hot(kTime, [](auto i) { return i; });
  scorer.add(ScoreTargets(full, false, {}), first);
  scorer.add(ScoreTargets(full, false, {}), second);
  scorer.add(ScoreTargets(part, false, {}), one_hot(2, [](auto) { return 1; }));
  Weights expected(kTime * kTime);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = (first[i] + second[i]) / 2;
  CHECK(scorer.mean_weights() == expected);
}

TEST_CASE("weights that are no attention are refused", "[inspect]") {
  const Tokens tokens = {0, 1, 2, 3, 4, 5, 6};
  HeadScorer scorer(kTime, true);
  const ScoreTargets targets(tokens, true, {});
  const Weights self = one_hot(kTime, [](auto i) { return i; });
  CHECK_NOTHROW(scorer.add(targets, self));
  Weights dropped = self;  // what dropout with p = 0.1 leaves
  for (double& w : dropped) w /= 0.9;
  CHECK_THROWS_WITH(scorer.add(targets, dropped), ContainsSubstring("add up to 1.11"));
  CHECK_THROWS_AS(scorer.add(targets, dropped), NumericError);
  // Without the mask some of the weight is ahead.
  CHECK_THROWS_AS(scorer.add(targets, Weights(kTime * kTime, 1.0 / kTime)), NumericError);
  CHECK_THROWS_AS(scorer.add(targets, Weights(kTime * kTime, kNaN)), NumericError);
  CHECK_THROWS_AS(scorer.add(targets, Weights(kTime)), ShapeError);
  CHECK_THROWS_AS(scorer.add(ScoreTargets(tokens, false, {}), self), ShapeError);
  CHECK_THROWS_AS(HeadScorer(kTime - 1, true).add(targets, Weights((kTime - 1) * (kTime - 1))), ShapeError);
  for (const Dataset::Link link :
       {Dataset::Link{0, 7}, Dataset::Link{7, 0}, Dataset::Link{-1, 0}, Dataset::Link{0, -1}})
    CHECK_THROWS_AS(ScoreTargets(tokens, true, Links{link}), ShapeError);
}
