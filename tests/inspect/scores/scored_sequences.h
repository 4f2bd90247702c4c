// Sequences with attention weights, for tests of scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "catch.h"
#include "thimble/engine/random.h"
#include "thimble/inspect/scores.h"

namespace scored {

using namespace thimble;

using Tokens = std::vector<std::int32_t>;
using Alignments = std::vector<Alignment>;
using Weights = std::vector<double>;  // (T, T)

inline constexpr std::int64_t kTime = 7;
inline constexpr std::int32_t kMark = 9;  // the special token

struct ScoredSequence {
  Tokens tokens;
  Alignments alignments;
  Weights weights;
  Alignments candidates{};
};

inline std::int64_t visible(std::int64_t i, std::int64_t n, bool causal) { return causal ? i + 1 : n; }

inline double cell(const ScoredSequence& s, std::int64_t i, std::int64_t j) {
  return s.weights[static_cast<std::size_t>(i * kTime + j)];
}

inline std::int32_t token(const ScoredSequence& s, std::int64_t i) {
  return s.tokens[static_cast<std::size_t>(i)];
}

// Returns weights on the visible keys that sum to 1, some of them 0; -1 in cells where reading is an error.
inline Weights random_weights(std::int64_t n, bool causal, SampleRng& draws) {
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

// Returns sequences of different lengths, half of full length, with repeated tokens, special tokens and
// alignments, some of them duplicate.
inline std::vector<ScoredSequence> random_sequences(bool causal) {
  SampleRng draws(Random(5, Stream::data), 0, causal ? 1 : 0);
  std::vector<ScoredSequence> out;
  for (int s = 0; s < 24; ++s) {
    const std::int64_t n = s % 2 == 0 ? kTime : 1 + draws.below(kTime);
    ScoredSequence sequence;
    for (std::int64_t i = 0; i < n; ++i)
      sequence.tokens.push_back(draws.below(6) == 0 ? kMark : static_cast<std::int32_t>(draws.below(3)));
    for (std::int64_t l = 0; l < n; ++l)
      sequence.alignments.push_back(
          {static_cast<std::int32_t>(draws.below(n)), static_cast<std::int32_t>(draws.below(n))});
    sequence.alignments.push_back(sequence.alignments.front());
    sequence.weights = random_weights(n, causal, draws);
    out.push_back(sequence);
  }
  return out;
}

inline std::vector<HeadScore> scores(const std::vector<ScoredSequence>& sequences, bool causal) {
  HeadScorer scorer(kTime, causal);
  const std::vector<std::int32_t> special = {kMark};
  for (const ScoredSequence& s : sequences)
    scorer.add(ScoreTargets(s.tokens, causal, {s.alignments}, special), s.weights);
  return scorer.scores();
}

inline void expect_undefined(const HeadScore& score) {
  INFO(score.name);
  CHECK(score.eligible == 0);
  CHECK(std::isnan(score.value));
  CHECK(std::isnan(score.chance));
  CHECK(std::isnan(score.attainable));
}

// Returns weights of a sequence of n tokens in which query i attends only to key(i).
inline Weights one_hot(std::int64_t n, const std::function<std::int64_t(std::int64_t)>& key) {
  Weights weights(kTime * kTime, 0);
  for (std::int64_t i = 0; i < n; ++i) weights[static_cast<std::size_t>(i * kTime + key(i))] = 1;
  return weights;
}

}  // namespace scored
