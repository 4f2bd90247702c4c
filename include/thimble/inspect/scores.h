// Scores of attention patterns. Every score is a mean over queries of the attention weights that a model uses
// in evaluation mode, after the mask and the softmax.
//
// A[i,j] is the weight of query i on key j, x the tokens, n <= T the length of a sequence without padding,
// V(i) the keys visible to query i: 0 .. i with a causal mask, otherwise 0 .. n-1. A query is eligible where
// the score is defined, and where it counts (ScoreTargets): in the last block before the output that are the queries with a
// label, or the pooled one, as no other output of its heads can reach the loss; elsewhere, and before a mean over positions,
// all. Means are over all eligible queries of all sequences.
//
// In cross-attention the queries are positions of the target and the keys, x and n those of the source.
// Scores that compare position numbers stay defined, and the task's target is the alignment (Bahdanau et al.
// 2015); those that refer to a position of the query's own sequence have no eligible query.
//
// kScoreTable has a row for each score. The shape of attention comes first; the others are the sum of A[i,j] over
// target keys j, visible or not.
//
// The best k is the one whose value is furthest above its chance level; chance and attainable are those of
// this k alone, so the best of many k is slightly above chance for any head.
//
// chance is the value for weights uniform over V(i), attainable the largest value of any weights on V(i): 1
// where a target is visible and otherwise 0, for entropy and positional_share 1, for the distances that of
// the furthest key. Both are means over the same queries as the value.
//
// matched chance is stricter than chance: what a head reaches that does something simpler. Scores of content
// (ScoreInfo::content) have two baselines besides uniform attention:
//   same_positions     the weight on the target cells of the other sequences of equal size, on average: keeps
//                      positions, removes content. A head that follows positions alone does no better.
//   same_class         task_target: the weight on all candidates (Dataset::candidates), shared equally among
//                      them: keeps the class, removes the member. The others: the mean weight of the queries
//                      with another token on the same keys: keeps the keys, removes the query.
// absolute_position has one too:
//   same_tokens        the mean weight on the tokens that are at position k, at other positions: keeps tokens,
//                      removes the position. Tokens that occur nowhere else are left out, and the weight that
//                      a token gets at k is taken to be that of all tokens there.
// Where there is nothing to compare with, a single sequence of a size or a key that is a target of all
// queries, the baseline is the value itself.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/inspect/position_means.h"
#include "thimble/inspect/score_targets.h"
#include "thimble/train/json.h"

namespace thimble {

// A row of the table of scores, which terminal, page, JSON and lab read.
struct ScoreInfo {
  std::string_view name;   // in JSON
  std::string_view title;  // for people
  std::string_view meaning;
  std::string_view column{};       // its title in a table of the terminal; empty: it is never one
  bool target = false;             // whether it is attention on target keys, not a shape of attention
  std::string_view noun{};         // a head whose pattern it is; empty: it names no head
  int kind = 0;                    // of the pattern, see kAmbiguous of patterns.h
  int order = 0;                   // of equally strong patterns of a kind the first one wins
  bool content = false;            // whether the pattern is about tokens and not about positions
  std::string_view label = title;  // of such a head
};

inline constexpr ScoreInfo kScoreTable[] = {
    // H(A[i,:]) / ln |V(i)|, for |V(i)| > 1
    {"entropy", "entropy", "normalized: 0 when all attention is on one key, 1 when it is uniform"},
    // sum_j A[i,j] |i-j|
    {"distance", "distance", "mean distance between query and key, in tokens"},
    // sum_j A[i,j] (j-i): negative attends to earlier positions
    {"signed_distance", "signed distance", "mean of key position minus query position, in tokens"},
    // A[i,i] and A[i,0], queries to which the key is visible
    {"self", "self", "attention on the query's own position", "self", false,
     "a head that attends to its own position", 0, 6, false, "this position"},
    {"first", "first", "attention on position 0"},
    // sum of A[i,j] over special tokens; queries to which one is visible
    {"special", "special tokens", "attention on special tokens"},
    // sum_ij c_ij (mean_x (A_ij - u_ij))^2 / sum_ij sum_x (A_ij - u_ij)^2 over the c_ij sequences x that have
    // query i and key j, two or more; u uniform over V(i). 1: attention depends on positions from the start
    // alone, 0: on anything else, lengths included. Undefined for a uniform head; it has no chance value.
    {"positional_share", "positional share",
     "1 when attention depends on positions only, 0 when it depends on content only"},
    // i-1, queries with i > 0
    {"previous_token", "previous token", "attention on the token before the query", "prev", true,
     "a previous-token head", 0, 2, false},
    // i+1, queries with i < n-1; only without a causal mask
    {"next_token", "next token", "attention on the token after the query", "next", true, "a next-token head",
     0, 3, false},
    // n-1-i, queries for which it is a position: all, in self-attention
    {"mirror", "mirror", "attention on the position as far from the end as the query is from the start",
     "mirror", true, "a mirror head", 0, 0, false},
    // i+k where that is a position, for the best k for which at least 45 % of all queries are eligible and
    // some key is visible: a k of few queries does not describe a head
    {"offset", "offset", "attention on the key at the best fixed offset", "offset", true,
     "a fixed-offset head", 2, 0, false},
    // j != i with x[j] = x[i], queries with such a j
    {"same_token", "same token", "attention on other occurrences of the same token", "same", true,
     "a same-token head", 0, 5, true},
    // j < i with x[j] = x[i], queries with such a j; with a causal mask the same as same_token
    {"duplicate_token", "duplicate token", "attention on earlier occurrences of the same token", "dupl", true,
     "a duplicate-token head", 0, 4, true},
    // 1 <= j <= i with x[j-1] = x[i], queries with an earlier x[i] (Olsson et al. 2022)
    {"induction", "induction",
     "attention on the token that followed an earlier occurrence of the query token", "induct", true,
     "an induction head", 0, 1, true},
    // k, for the best k; all queries
    {"absolute_position", "fixed position", "attention on the best fixed position", "position", true,
     "a fixed-position head", 3, 0, false, "position"},
    // the positions the answer depends on (Dataset::alignments), queries that have one
    {"task_target", "task target", "attention on the positions the answer depends on", "target", true,
     "a task-target head", 1, 0, true},
};

// The mean cross entropy at a position of the input, in nats, and of how many labels; NaN without any.
struct PositionLoss {
  double loss = 0;
  std::int64_t labels = 0;
};

// A score of a head. value, chance and attainable are NaN without an eligible query.
struct HeadScore {
  std::string_view name;
  double value = 0, chance = 0, attainable = 0;
  double at_init = std::numeric_limits<double>::quiet_NaN();  // unknown until set_at_init
  std::int64_t eligible = 0;                                  // queries
  std::optional<std::int64_t> at{};                           // the best k
  std::string_view kind{};  // of a task target, where the task has several kinds
  // The share of the eligible queries that have more than half of their weight on the targets; NaN: not of this score.
  double majority = std::numeric_limits<double>::quiet_NaN();
  // Baselines; NaN: not of this score, or unknown.
  double same_positions = std::numeric_limits<double>::quiet_NaN();
  double same_class = std::numeric_limits<double>::quiet_NaN();
  double same_tokens = std::numeric_limits<double>::quiet_NaN();

  // The score of the same head, with the same k, on varied examples (Task::vary).
  struct Varied {
    double value = 0, chance = 0, matched = 0, attainable = 0;
    std::int64_t eligible = 0;
  };
  std::optional<Varied> varied{};

  // Returns the strictest baseline: the largest of chance and those above.
  double matched() const {
    return std::fmax(std::fmax(chance, same_tokens), std::fmax(same_positions, same_class));
  }
};

// The scores of one head over any number of sequences.
class HeadScorer {
 public:
  // length: T, of the longest sequence.
  HeadScorer(std::int64_t length, bool causal);

  // Returns a scorer of cross-attention with T queries and S keys, of the longest sequences. Weights are then
  // (T, S) instead of (T, T).
  static HeadScorer cross(std::int64_t queries, std::int64_t keys);

  // Adds the weights (T, T) of a sequence, of which n x n are read. With the counts of all sequences, which
  // must outlive the scorer, same_positions and same_tokens are computed, else they stay NaN. Throws
  // ShapeError when the sequence is
  // longer than T, has another visibility, or the weights are not T x T; NumericError when the weights of a
  // query over its visible keys do not sum to 1.
  void add(const ScoreTargets& targets, std::span<const double> weights,
           const TargetCounts* counts = nullptr);

  // Returns the scores of kScoreTable, then the task targets by kind if there are several. With `like`,
  // scores of the same head on other sequences, the best k is theirs.
  std::vector<HeadScore> scores(std::span<const std::string_view> kinds = {},
                                std::span<const HeadScore> like = {}) const;

  // The weights (T, T) by position.
  const PositionSums& weights() const { return weights_; }

 private:
  struct Mean {
    double value = 0, chance = 0, attainable = 0, eligible = 0;  // sums until divided
    double same_positions = 0, same_class = 0;
    double majority = 0;  // queries with more than half of their weight on the targets
    bool has_positions = false, has_class = false;
    HeadScore score(std::string_view name) const;
  };
  struct Positions;

  HeadScorer(std::int64_t queries, std::int64_t keys, Visibility);
  void add_row(const ScoreTargets& targets, std::int64_t query, const double* row);
  void add_content(Mean&, const ScoreTargets& targets, std::size_t score, std::span<const double> weights,
                   const TargetCounts::Group*) const;
  Positions positions() const;
  void add_positions(Positions&, std::int64_t keys, const std::vector<double>& counts) const;
  HeadScore positional_share() const;
  double same_tokens(std::int64_t position, double queries) const;
  std::int64_t visible(std::int64_t query, std::int64_t keys) const {
    return visibility_ == Visibility::earlier ? query + 1 : keys;
  }

  std::int64_t queries_, keys_;  // T and T, or T and S
  Visibility visibility_;
  // Sums of weights and majorities: of key i + k, at k + T - 1, of key k, and of the mirrored key.
  std::vector<Mean> offset_, position_;
  Mean mirror_;
  std::vector<double> keys_weight_;  // of the sequence that is added, summed over its queries
  PositionSums weights_;
  std::map<std::int32_t, double> token_;  // summed weight on keys with a token
  const TargetCounts* counts_ = nullptr;
  double squares_ = 0, entropy_ = 0;  // summed: of the distance of weights from uniform, and entropies
  std::int64_t entropy_queries_ = 0;
  std::vector<Mean> content_ = std::vector<Mean>(ScoreTargets::kScores);  // by ContentScore, then by kind
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<double>>
      counted_;                          // sequences by size and query
  std::vector<double> counted_weights_;  // as the sums of weights_, of the queries that count; empty: all do
};

// Returns the first score of a name, a copy if the scores are a temporary. Throws Error when there is none.
const HeadScore& find_score(std::span<const HeadScore> scores, std::string_view name);
inline HeadScore find_score(std::vector<HeadScore>&& scores, std::string_view name) {
  return find_score(std::span<const HeadScore>(scores), name);
}

// Returns (value - chance) / (attainable - chance): 0 at chance, 1 for a perfect head; 0 where attainable is
// not above chance or the value is NaN.
double strength(double value, double chance, double attainable);

// Sets at_init to the values of `initial`, all scores of the same head on the same sequences at
// initialization, made with `like` these scores.
void set_at_init(std::span<HeadScore> scores, std::span<const HeadScore> initial);

// Sets `varied` to the scores of the same head on varied examples, made with `like` these scores.
void set_varied(std::span<HeadScore> scores, std::span<const HeadScore> varied);

// Returns the table for pages: [{"name", "title", "meaning", "target"}, ...].
Json score_table();

// Returns {name: {"value", "chance", "at_init", "attainable", "eligible"}, ...}, with "at" where there is a
// best k, "majority" where attention is on target keys, "matched" and its baselines where there are any,
// "varied": {"value", "chance", "matched", "attainable", "eligible"} where it is known, "kinds": {kind: {...}} where the task
// has several, and null for a number that is not finite.
Json to_json(std::span<const HeadScore> scores);

}  // namespace thimble
