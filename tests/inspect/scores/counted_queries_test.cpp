// Scores of the queries that can reach the loss.
#include <cmath>
#include <functional>

#include "catch.h"
#include "scored_sequences.h"

using namespace scored;

namespace {

// Returns the scores of some queries of each sequence.
std::vector<HeadScore> scores_of_queries(const std::vector<ScoredSequence>& sequences, bool causal,
                                         const std::function<bool(std::int64_t)>& is_counted) {
  HeadScorer scorer(kTime, causal);
  TargetCounts counts;
  const std::vector<std::int32_t> special = {kMark};
  std::vector<ScoreTargets> targets;
  for (const ScoredSequence& s : sequences) {
    ScoreTargets::TaskTargets task{.alignments = s.alignments, .queries = std::vector<std::int64_t>()};
    for (std::int64_t i = 0; i < std::ssize(s.tokens); ++i)
      if (is_counted(i)) task.queries->push_back(i);
    targets.emplace_back(s.tokens, causal, task, special);
    counts.add(targets.back());
  }
  for (std::size_t i = 0; i < sequences.size(); ++i) scorer.add(targets[i], sequences[i].weights, &counts);
  return scorer.scores();
}

}  // namespace

TEST_CASE("scores of some queries and of the others make up those of all", "[inspect]") {
  for (const bool causal : {false, true}) {
    const std::vector<ScoredSequence> sequences = random_sequences(causal);
    const auto is_third = [](std::int64_t i) { return i % 3 == 1; };
    const auto some = scores_of_queries(sequences, causal, is_third),
               others = scores_of_queries(sequences, causal, [&](std::int64_t i) { return !is_third(i); }),
               all = scores_of_queries(sequences, causal, [](std::int64_t) { return true; });
    int compared = 0;
    for (std::size_t s = 0; s < all.size(); ++s) {
      CAPTURE(causal, all[s].name);
      if (all[s].at || all[s].name == "positional_share" || all[s].eligible == 0) continue;
      const auto sum = [&](double HeadScore::*of) {
        const auto part = [&](const HeadScore& score) {
          return score.eligible > 0 ? score.*of * static_cast<double>(score.eligible) : 0;
        };
        return part(some[s]) + part(others[s]);
      };
      const auto queries = static_cast<double>(all[s].eligible);
      CHECK(some[s].eligible + others[s].eligible == all[s].eligible);
      if (all[s].name != "self") CHECK(some[s].value != all[s].value);
      CHECK_THAT(sum(&HeadScore::value), WithinAbs(queries * all[s].value, 1e-9));
      CHECK_THAT(sum(&HeadScore::chance), WithinAbs(queries * all[s].chance, 1e-9));
      CHECK_THAT(sum(&HeadScore::attainable), WithinAbs(queries * all[s].attainable, 1e-9));
      if (std::isfinite(all[s].same_positions))
        CHECK_THAT(sum(&HeadScore::same_positions), WithinAbs(queries * all[s].same_positions, 1e-9));
      ++compared;
    }
    CHECK(compared > 10);
  }
}

TEST_CASE("if all queries count, scores have the bits that they have without a choice", "[inspect]") {
  const std::vector<ScoredSequence> sequences = random_sequences(true);
  const auto all = scores_of_queries(sequences, true, [](std::int64_t) { return true; });
  const auto usual = scores(sequences, true);
  for (std::size_t s = 0; s < all.size(); ++s) {
    CAPTURE(all[s].name);
    CHECK((all[s].value == usual[s].value || std::isnan(usual[s].value)));
    CHECK(all[s].eligible == usual[s].eligible);
  }
}

TEST_CASE("baselines and the positional share are of the queries that count", "[inspect]") {
  const std::vector<ScoredSequence> sequences = random_sequences(true);
  constexpr std::int64_t kQuery = 4;
  const auto some = scores_of_queries(sequences, true, [](std::int64_t i) { return i == kQuery; });
  // The share, over the sequences that have the query, of which all see five keys.
  std::vector<double> means(kQuery + 1);
  double squares = 0, count = 0, of_means = 0;
  for (const ScoredSequence& s : sequences) {
    if (std::ssize(s.tokens) <= kQuery) continue;
    ++count;
    for (std::int64_t j = 0; j <= kQuery; ++j) {
      const double excess = cell(s, kQuery, j) - 1.0 / (kQuery + 1);
      means[static_cast<std::size_t>(j)] += excess;
      squares += excess * excess;
    }
  }
  for (const double sum : means) of_means += sum * sum / count;
  const HeadScore& share = find_score(some, "positional_share");
  CHECK_THAT(share.value, WithinAbs(of_means / squares, 1e-12));
  CHECK(share.eligible == std::llround(count));
  // The mean weight of the queries with another token on the targets' keys: of one query a sequence, its own.
  const HeadScore& same = find_score(some, "same_token");
  CHECK(same.eligible > 0);
  CHECK_THAT(same.same_class, WithinAbs(same.value, 1e-12));
}

TEST_CASE("sequences of which all queries count may come before others", "[inspect]") {
  std::vector<ScoredSequence> sequences;
  for (const ScoredSequence& s : random_sequences(true))
    if (std::ssize(s.tokens) == kTime && sequences.size() < 4) sequences.push_back(s);
  const auto share = [&](std::vector<std::size_t> order) {
    HeadScorer scorer(kTime, true);
    for (const std::size_t i : order) {
      ScoreTargets::TaskTargets task;
      if (i % 2 == 1) task.queries = std::vector<std::int64_t>{4};
      scorer.add(ScoreTargets(sequences[i].tokens, true, task), sequences[i].weights);
    }
    return find_score(scorer.scores(), "positional_share");
  };
  const HeadScore before = share({0, 2, 1, 3}), after = share({1, 3, 0, 2});
  CHECK_THAT(before.value, WithinAbs(after.value, 1e-12));
  CHECK(before.value > 0);
  CHECK(before.eligible == after.eligible);
}
