// Matched chance of scores, against a second implementation of the definitions.
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "catch.h"
#include "scored_sequences.h"

using namespace scored;

namespace {

using Keys = std::set<std::int64_t>;
using Target = std::function<Keys(const ScoredSequence&, std::int64_t i)>;

template <class Condition>
Keys keys_where(std::int64_t from, std::int64_t end, const Condition& condition) {
  Keys keys;
  for (std::int64_t j = from; j < end; ++j)
    if (condition(j)) keys.insert(j);
  return keys;
}

Keys keys_of(const Alignments& alignments, std::int64_t query, std::int32_t kind = -1) {
  Keys keys;
  for (const auto& a : alignments)
    if (a.query == query && (kind < 0 || a.kind == kind)) keys.insert(a.key);
  return keys;
}

// Returns random sequences whose targets have two kinds, with the targets and some other keys as candidates.
std::vector<ScoredSequence> sequences_with_candidates(bool causal) {
  SampleRng rng(Random(6, Stream::data), 0, 0);
  std::vector<ScoredSequence> out = random_sequences(causal);
  for (ScoredSequence& s : out) {
    const auto n = static_cast<std::int64_t>(s.tokens.size());
    for (auto& a : s.alignments) a.kind = static_cast<std::int32_t>(rng.below(2));
    s.alignments.back() = s.alignments.front();
    s.candidates = s.alignments;
    for (const auto& a : s.alignments)
      s.candidates.push_back({a.query, static_cast<std::int32_t>(rng.below(n))});
  }
  return out;
}

std::vector<HeadScore> compared_scores(const std::vector<ScoredSequence>& sequences, bool causal,
                                       std::span<const HeadScore> like = {}) {
  constexpr std::string_view kKinds[] = {"left", "right"};
  std::vector<ScoreTargets> targets;
  TargetCounts counts;
  for (const ScoredSequence& s : sequences) {
    targets.emplace_back(s.tokens, causal, ScoreTargets::TaskTargets{s.alignments, s.candidates, 2});
    counts.add(targets.back());
  }
  HeadScorer scorer(kTime, causal);
  for (std::size_t i = 0; i < sequences.size(); ++i) scorer.add(targets[i], sequences[i].weights, &counts);
  return scorer.scores(kKinds, like);
}

std::int64_t length(const ScoredSequence& s) { return std::ssize(s.tokens); }

// Returns the weight of sequence `from` on the targets of sequence `of`, and how many queries have targets.
std::pair<double, double> weight_on(const ScoredSequence& from, const ScoredSequence& of, bool causal,
                                    const Target& target) {
  double weight = 0, queries = 0;
  for (std::int64_t i = 0; i < length(of); ++i) {
    const Keys keys = target(of, i);
    queries += keys.empty() ? 0 : 1;
    for (const std::int64_t j : keys)
      if (j < visible(i, length(of), causal)) weight += cell(from, i, j);
  }
  return {weight, queries};
}

double plain_same_positions(const std::vector<ScoredSequence>& sequences, bool causal, const Target& target) {
  double sum = 0, queries = 0;
  for (const ScoredSequence& x : sequences) {
    double others = 0, count = 0;
    for (const ScoredSequence& y : sequences) {
      if (&x == &y || length(x) != length(y)) continue;
      others += weight_on(x, y, causal, target).first;
      ++count;
    }
    const auto [own, eligible] = weight_on(x, x, causal, target);
    sum += count == 0 ? own : others / count;
    queries += eligible;
  }
  return sum / queries;
}

double plain_other_queries(const std::vector<ScoredSequence>& sequences, bool causal, const Target& target) {
  double sum = 0, queries = 0;
  for (const ScoredSequence& s : sequences) {
    for (std::int64_t i = 0; i < length(s); ++i) {
      const Keys keys = target(s, i);
      queries += keys.empty() ? 0 : 1;
      for (const std::int64_t j : keys) {
        if (j >= visible(i, length(s), causal)) continue;
        double others = 0, count = 0;
        for (std::int64_t other = 0; other < length(s); ++other) {
          if (j >= visible(other, length(s), causal) || target(s, other).contains(j)) continue;
          others += cell(s, other, j);
          ++count;
        }
        sum += count == 0 ? cell(s, i, j) : others / count;
      }
    }
  }
  return sum / queries;
}

double plain_candidates(const std::vector<ScoredSequence>& sequences, bool causal, const Target& target) {
  double sum = 0, queries = 0;
  for (const ScoredSequence& s : sequences) {
    for (std::int64_t i = 0; i < length(s); ++i) {
      const Keys keys = target(s, i);
      const auto is_visible = [&](std::int64_t j) { return j < visible(i, length(s), causal); };
      queries += keys.empty() ? 0 : 1;
      double on_all = 0, count = 0;
      for (const std::int64_t j : keys_of(s.candidates, i)) {
        if (!is_visible(j)) continue;
        on_all += cell(s, i, j);
        ++count;
      }
      if (count > 0) sum += on_all / count * static_cast<double>(std::ranges::count_if(keys, is_visible));
    }
  }
  return sum / queries;
}

// Returns the mean weight that the tokens at a position get at others: of each token, what it gets anywhere without
// what a token gets at the position.
double plain_same_tokens(const std::vector<ScoredSequence>& sequences, bool causal, std::int64_t position) {
  std::map<std::int32_t, double> weights, pairs, here;
  double weight_here = 0, pairs_here = 0, queries = 0;
  for (const ScoredSequence& s : sequences) {
    for (std::int64_t i = 0; i < length(s); ++i, ++queries) {
      for (std::int64_t j = 0; j < visible(i, length(s), causal); ++j) {
        weights[token(s, j)] += cell(s, i, j);
        ++pairs[token(s, j)];
        if (j != position) continue;
        ++here[token(s, j)];
        ++pairs_here;
        weight_here += cell(s, i, j);
      }
    }
  }
  double sum = 0, compared = 0;
  for (const auto& [t, count] : here) {
    if (pairs[t] == count) continue;
    sum += count * std::max(0.0, weights[t] - count * weight_here / pairs_here) / (pairs[t] - count);
    compared += count;
  }
  return sum / compared * pairs_here / queries;
}

const Target kSame = [](const ScoredSequence& s, std::int64_t i) {
  return keys_where(0, length(s), [&](auto j) { return j != i && token(s, j) == token(s, i); });
};
const Target kDuplicate = [](const ScoredSequence& s, std::int64_t i) {
  return keys_where(0, i, [&](auto j) { return token(s, j) == token(s, i); });
};
const Target kInduction = [](const ScoredSequence& s, std::int64_t i) {
  return keys_where(1, i + 1, [&](auto j) { return token(s, j - 1) == token(s, i); });
};

}  // namespace

TEST_CASE("scores of tokens have the baselines of other sequences and of other queries", "[inspect]") {
  for (const bool causal : {false, true}) {
    const auto sequences = sequences_with_candidates(causal);
    const auto found = compared_scores(sequences, causal);
    for (const auto& [name, target] :
         {std::pair("same_token", kSame), {"duplicate_token", kDuplicate}, {"induction", kInduction}}) {
      INFO(name << (causal ? ", causal" : ""));
      const HeadScore& score = find_score(found, name);
      CHECK_THAT(score.same_positions, WithinAbs(plain_same_positions(sequences, causal, target), 1e-12));
      CHECK_THAT(score.same_class, WithinAbs(plain_other_queries(sequences, causal, target), 1e-12));
      CHECK(score.matched() >= score.chance);
      CHECK(score.matched() == std::max({score.chance, score.same_positions, score.same_class}));
    }
  }
}

TEST_CASE("task targets have the baselines of other sequences and of candidates, as a whole and by kind",
          "[inspect]") {
  for (const bool causal : {false, true}) {
    const auto sequences = sequences_with_candidates(causal);
    const auto found = compared_scores(sequences, causal);
    int checked = 0;
    for (const HeadScore& score : found) {
      if (score.name != "task_target") continue;
      const std::int32_t kind = score.kind.empty() ? -1 : score.kind == "left" ? 0 : 1;
      const Target target = [kind](const ScoredSequence& s, std::int64_t i) {
        return keys_of(s.alignments, i, kind);
      };
      INFO(score.kind << (causal ? ", causal" : ""));
      CHECK_THAT(score.same_positions, WithinAbs(plain_same_positions(sequences, causal, target), 1e-12));
      CHECK_THAT(score.same_class, WithinAbs(plain_candidates(sequences, causal, target), 1e-12));
      double value = 0, queries = 0;
      for (const ScoredSequence& s : sequences) {
        const auto [weight, eligible] = weight_on(s, s, causal, target);
        value += weight;
        queries += eligible;
      }
      CHECK_THAT(score.value, WithinAbs(value / queries, 1e-12));
      CHECK(score.eligible == std::llround(queries));
      ++checked;
    }
    CHECK(checked == 3);
  }
}

TEST_CASE("scores of positions have no matched chance, and without counts same_positions is unknown",
          "[inspect]") {
  const auto sequences = sequences_with_candidates(false);
  for (const HeadScore& score : compared_scores(sequences, false)) {
    INFO(score.name);
    const bool content = score.name == "same_token" || score.name == "duplicate_token" ||
                         score.name == "induction" || score.name == "task_target";
    CHECK(std::isnan(score.same_class) == !content);
    const Json json = to_json(std::span(&score, 1)).front();
    CHECK((score.kind.empty() ? json : json["kinds"][std::string(score.kind)]).contains("same_class") ==
          content);
  }
  for (const HeadScore& score : scores(sequences, false)) CHECK(std::isnan(score.same_positions));
}

TEST_CASE("a head that follows positions alone is at the baseline of positions", "[inspect]") {
  std::vector<ScoredSequence> sequences = sequences_with_candidates(true);
  std::erase_if(sequences, [](const ScoredSequence& s) { return length(s) < kTime; });
  for (ScoredSequence& s : sequences) s.weights = sequences[0].weights;
  for (const HeadScore& score : compared_scores(sequences, true))
    if (!std::isnan(score.same_class)) CHECK_THAT(score.same_positions, WithinAbs(score.value, 1e-12));
}

TEST_CASE("every position has the baseline of its tokens, over the keys that queries can attend to",
          "[inspect]") {
  for (const bool causal : {false, true}) {
    std::vector<ScoredSequence> sequences = sequences_with_candidates(causal);
    sequences[0].tokens[3] = 20;                                    // nowhere else
    sequences[2].tokens.front() = sequences[2].tokens.back() = 21;  // with little weight
    sequences[2].weights = one_hot(kTime, [](std::int64_t i) { return i; });
    std::vector<HeadScore> like = compared_scores(sequences, causal);
    HeadScore& best = *std::ranges::find(like, "absolute_position", &HeadScore::name);
    for (std::int64_t position = 0; position < kTime; ++position) {
      CAPTURE(causal, position);
      best.at = position;
      const HeadScore score = find_score(compared_scores(sequences, causal, like), "absolute_position");
      CHECK(score.at == position);
      CHECK_THAT(score.same_tokens, WithinAbs(plain_same_tokens(sequences, causal, position), 1e-12));
    }
  }
}

TEST_CASE("a position that no sequence has is without a baseline of its tokens", "[inspect]") {
  std::vector<ScoredSequence> sequences = sequences_with_candidates(true);
  std::vector<HeadScore> like = compared_scores(sequences, true);
  std::ranges::find(like, "absolute_position", &HeadScore::name)->at = kTime - 1;
  std::erase_if(sequences, [](const ScoredSequence& s) { return length(s) >= kTime; });
  REQUIRE_FALSE(sequences.empty());
  const HeadScore score = find_score(compared_scores(sequences, true, like), "absolute_position");
  CHECK(std::isnan(score.same_tokens));
}

TEST_CASE("the baseline of tokens is the weight on the same tokens at other positions", "[inspect]") {
  // Sequences with token p, or in every other one p - 1, at position p. A head attends to position 2, or to
  // token 2 wherever it is.
  for (const bool by_position : {true, false}) {
    std::vector<ScoredSequence> sequences;
    for (int s = 0; s < 40; ++s) {
      ScoredSequence one;
      for (std::int32_t p = 0; p < kTime; ++p) one.tokens.push_back((p + kTime - s % 2) % kTime);
      const std::int64_t key = by_position ? 2 : 2 + s % 2;
      one.weights = one_hot(kTime, [key](std::int64_t) { return key; });
      sequences.push_back(one);
    }
    const HeadScore score = find_score(compared_scores(sequences, false), "absolute_position");
    REQUIRE(score.at == 2);
    CHECK(score.value == (by_position ? 1 : 0.5));
    // Token 2 is at 2 or 3, token 1 at 1 or 2. Following tokens, each has 0.5 on average at position 2.
    CHECK_THAT(score.same_tokens, WithinAbs(by_position ? 0 : 0.75, 1e-12));
  }
}
