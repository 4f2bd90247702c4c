// Scores of given attention weights: what is 1, what is chance, what is undefined or refused.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "catch.h"
#include "scored_sequences.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"

using namespace scored;

TEST_CASE("an offset of few queries does not describe a head", "[inspect]") {
  // Query 0 of a mirror head attends 6 ahead with all its weight, but it is one query of seven.
  const Tokens tokens = {0, 1, 2, 3, 4, 5, 6};
  const auto found =
      scores({{tokens, {}, one_hot(kTime, [](std::int64_t i) { return kTime - 1 - i; })}}, false);
  CHECK(find_score(found, "mirror").value == 1);
  CHECK(find_score(found, "offset").value < 0.3);
}

TEST_CASE("an offset that a causal mask hides is never the best", "[inspect]") {
  // Every negative offset is below chance.
  Weights weights = one_hot(kTime, [](std::int64_t) { return 0; });
  for (const std::size_t i : {2, 3})
    for (std::size_t j = 0; j <= i; ++j) weights[i * kTime + j] = 1 / static_cast<double>(i + 1);
  const auto found = scores({{{0, 1, 2, 3, 4, 5, 6}, {}, weights}}, true);
  const HeadScore& offset = find_score(found, "offset");
  CHECK(offset.value < offset.chance);
  CHECK(offset.at == -1);
}

TEST_CASE("the positional share is 1 for a fixed pattern, 0 for none, and undefined for a uniform head",
          "[inspect]") {
  const Tokens tokens = {0, 1, 2, 3, 4, 5, 6};
  const auto share = [&](const std::vector<Weights>& all) {
    std::vector<ScoredSequence> sequences;
    for (const Weights& weights : all) sequences.push_back({tokens, {}, weights});
    return find_score(scores(sequences, false), "positional_share");
  };
  const Weights fixed = one_hot(kTime, [](std::int64_t i) { return i / 2; });
  CHECK_THAT(share({fixed, fixed}).value, WithinAbs(1, 1e-12));
  std::vector<Weights> everywhere;  // attends to every key once
  for (std::int64_t k = 0; k < kTime; ++k)
    everywhere.push_back(one_hot(kTime, [k](std::int64_t i) { return (i + k) % kTime; }));
  CHECK_THAT(share(everywhere).value, WithinAbs(0, 1e-12));
  // Uniform up to the rounding of a softmax of floats.
  const Weights uniform(kTime * kTime, static_cast<double>(1.0F / static_cast<float>(kTime)));
  expect_undefined(share({uniform, uniform}));
  expect_undefined(share({fixed}));  // one sequence is not enough
}

TEST_CASE("a head of one pattern has a score of 1", "[inspect]") {
  const Tokens tokens = {3, 1, 2, 3, 1, 2, 3};
  const auto value = [&](std::string_view name, bool causal, const Alignments& alignments, auto key) {
    return find_score(scores({{tokens, alignments, one_hot(kTime, key)}}, causal), name);
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
  // A causal mask hides half of the mirrored positions; the middle one is the query itself.
  const HeadScore mirror = value("mirror", true, {}, [](auto i) { return std::min(i, kTime - 1 - i); });
  CHECK_THAT(mirror.value, WithinAbs(4.0 / kTime, 1e-12));
  CHECK_THAT(mirror.attainable, WithinAbs(4.0 / kTime, 1e-12));
}

TEST_CASE("induction is the token after an earlier occurrence: in r r of period N key i - N + 1",
          "[inspect]") {
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
    for (ScoredSequence& s : sequences) {
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

TEST_CASE("a score without an eligible query is undefined, null in JSON", "[inspect]") {
  const Tokens tokens = {0, 1, 2, 3, 4, 5, 6};
  auto found = scores({{tokens, {}, one_hot(kTime, [](auto i) { return i; })}}, true);
  for (const auto* name :
       {"special", "same_token", "duplicate_token", "induction", "task_target", "next_token"})
    expect_undefined(find_score(found, name));
  auto initial = found;
  for (HeadScore& score : initial) score.value = 0.25;
  set_at_init(found, initial);
  const Json json = to_json(found);
  CHECK(json_text(json["special"]) ==
        R"({"value":null,"chance":null,"at_init":0.25,"attainable":null,"eligible":0})");
  CHECK(json_text(json["self"]) == json_text(Json({{"value", 1.0},
                                                   {"chance", find_score(found, "self").chance},
                                                   {"at_init", 0.25},
                                                   {"attainable", 1.0},
                                                   {"eligible", 7},
                                                   {"majority", 1.0}})));
  CHECK(json["offset"]["at"] == 0);
  std::vector<std::string> names;
  for (const auto& [name, score] : json.items()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"entropy", "distance", "signed_distance", "self", "first",
                                          "special", "positional_share", "previous_token", "next_token",
                                          "mirror", "offset", "same_token", "duplicate_token", "induction",
                                          "absolute_position", "task_target"});
  CHECK_THROWS_AS(find_score(found, "mirrors"), Error);
  for (const HeadScore& score : HeadScorer(kTime, false).scores()) expect_undefined(score);
  CHECK(to_json(HeadScorer(kTime, false).scores())["entropy"]["at_init"].is_null());
}

TEST_CASE("mean weights are those of the sequences that have the query and the key", "[inspect]") {
  HeadScorer scorer(kTime, false);
  CHECK(std::ranges::all_of(scorer.weights().means().from_start, [](double w) { return std::isnan(w); }));
  CHECK(scorer.weights().means().from_end.empty());
  const Tokens full = {0, 1, 2, 3, 4, 5, 6}, part = {0, 1};
  const auto first = one_hot(kTime, [](auto) { return 0; }),
             second = one_hot(kTime, [](auto i) { return i; });
  scorer.add(ScoreTargets(full, false, {}), first);
  scorer.add(ScoreTargets(full, false, {}), second);
  scorer.add(ScoreTargets(part, false, {}), one_hot(2, [](auto) { return 1; }));
  Weights expected(kTime * kTime);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = (first[i] + second[i]) / 2;
  Weights from_end = expected;
  const std::vector<std::int64_t> counts = scorer.weights().counts();
  CHECK(std::ranges::count(counts, 3) == 4);
  CHECK(std::ranges::count(counts, 2) == kTime * kTime - 4);
  // The short sequence is at one corner or at the other.
  for (const std::size_t i : {0, 1})
    for (const std::size_t j : {0, 1}) {
      const std::size_t at = i * kTime + j, at_end = (kTime - 2 + i) * kTime + kTime - 2 + j;
      CHECK(counts[at] == 3);
      const double weight = j == 1 ? 1 : 0;
      expected[at] = (first[at] + second[at] + weight) / 3;
      from_end[at_end] = (first[at_end] + second[at_end] + weight) / 3;
    }
  CHECK(scorer.weights().means().from_start == expected);
  CHECK(scorer.weights().means().from_end == from_end);
}

TEST_CASE("the positional share leaves out cells of one sequence", "[inspect]") {
  HeadScorer scorer(kTime, false);
  const Tokens full = {0, 1, 2, 3, 4, 5, 6}, part = {0, 1, 2};
  scorer.add(ScoreTargets(full, false, {}), one_hot(kTime, [](auto) { return 0; }));
  scorer.add(ScoreTargets(part, false, {}), one_hot(3, [](auto) { return 0; }));
  // Of the first three keys, above 1/7 and above 1/3.
  const double first = 6.0 / 7 + 2.0 / 3, others = 1.0 / 7 + 1.0 / 3;
  const double all = 36.0 / 49 + 4.0 / 9 + 2 * (1.0 / 49 + 1.0 / 9);
  const HeadScore share = find_score(scorer.scores(), "positional_share");
  CHECK_THAT(share.value, WithinAbs((first * first + 2 * others * others) / 2 / all, 1e-12));
  CHECK(share.eligible == 6);
}

TEST_CASE("weights that are not distributions are refused", "[inspect]") {
  const Tokens tokens = {0, 1, 2, 3, 4, 5, 6};
  HeadScorer scorer(kTime, true);
  const ScoreTargets targets(tokens, true, {});
  const Weights self = one_hot(kTime, [](auto i) { return i; });
  CHECK_NOTHROW(scorer.add(targets, self));
  Weights dropped = self;  // scaled as by dropout with p = 0.1
  for (double& w : dropped) w /= 0.9;
  CHECK_THROWS_WITH(scorer.add(targets, dropped), ContainsSubstring("sum to 1.11"));
  CHECK_THROWS_AS(scorer.add(targets, dropped), NumericError);
  // Without the mask some of the weight is on later keys.
  CHECK_THROWS_AS(scorer.add(targets, Weights(kTime * kTime, 1.0 / kTime)), NumericError);
  CHECK_THROWS_AS(scorer.add(targets, Weights(kTime * kTime, std::numeric_limits<double>::quiet_NaN())),
                  NumericError);
  CHECK_THROWS_AS(scorer.add(targets, Weights(kTime)), ShapeError);
  CHECK_THROWS_AS(scorer.add(ScoreTargets(tokens, false, {}), self), ShapeError);
  CHECK_THROWS_AS(HeadScorer(kTime - 1, true).add(targets, Weights((kTime - 1) * (kTime - 1))), ShapeError);
  for (const Alignment alignment : {Alignment{0, 7}, Alignment{7, 0}, Alignment{-1, 0}, Alignment{0, -1}})
    CHECK_THROWS_AS(ScoreTargets(tokens, true, {Alignments{alignment}}), ShapeError);
}
