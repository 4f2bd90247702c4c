// What a head looks at: every score is a mean over queries, taken from the attention weights that a model
// uses, after the mask and the softmax and before dropout, in evaluation mode.
//
// A[i,j] is the weight of query i on key j, x the tokens, n <= T the length of a sequence without padding,
// V(i) the keys that query i sees: 0 .. i with a causal mask, else 0 .. n-1. A query counts where the score
// has something to ask, which makes it eligible; means are over all eligible queries of all sequences.
//
// In cross-attention the queries are positions of one sequence and the keys, x and n those of another. Scores
// that compare numbers of positions stay defined, and task_target is the alignment (Bahdanau et al. 2015);
// self, previous_token, next_token, same_token, duplicate_token and induction ask for a place in the query's
// own sequence and have no eligible query.
//
// The shape of attention:
//   entropy            H(A[i,:]) / ln |V(i)|, queries that see one key left out: 0 focused, 1 uniform
//   distance           sum_j A[i,j] |i-j|
//   signed_distance    sum_j A[i,j] (j-i): negative looks back
//   self, first        A[i,j] for j = i, 0; queries that see that key
//   special            sum of A[i,j] over tokens that only mark something; queries that see one
//   positional_share   sum_ij (M_ij - u_ij)^2 / sum_ij mean_x (A_ij - u_ij)^2 over sequences of length T, two
//                      or more; M the mean of A over them, u uniform over V(i). 1: attention ignores content,
//                      0: it depends on nothing else. Undefined for a uniform head; it has no chance value.
//
// What the head looks for, the sum of A[i,j] over target keys j, whether the query sees them or not:
//   previous_token     i-1, queries that have one
//   next_token         i+1, likewise; without a causal mask only
//   mirror             n-1-i, queries that have one: all, in self-attention
//   offset             i+k where that is a position, for the best k of those that at least half of all
//                      queries have and any may see: a k that few queries have describes no head
//   same_token         j != i with x[j] = x[i], queries with such a j
//   duplicate_token    j < i with x[j] = x[i], queries with such a j
//   induction          1 <= j <= i with x[j-1] = x[i], queries with an earlier x[i] (Olsson et al. 2022)
//   absolute_position  k, for the best k; all queries
//   task_target        the keys that the task names (Dataset::alignments), queries for which it names one
//
// The best k is the one whose value is furthest above its chance; chance and attainable are those of that k
// alone, so a little above chance is what any head has. Best of many only matters for small differences.
//
// chance is the value for weights uniform over V(i), attainable the largest value that any weights on V(i)
// have: 1 where a target is seen and 0 where none is, for entropy and positional_share 1, for the distances
// that of the key furthest away. Both are means over the same queries as the value.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/inspect/scores/score_targets.h"

namespace thimble {

// Without an eligible query value, chance and attainable are NaN.
struct HeadScore {
  std::string_view name;
  double value = 0, chance = 0, attainable = 0;
  double at_init = std::numeric_limits<double>::quiet_NaN();  // unknown until set_at_init
  std::int64_t eligible = 0;                                  // queries
  std::optional<std::int64_t> at{};                           // the best k
};

// The scores of one head over any number of sequences.
class HeadScorer {
 public:
  // length: T, of the longest sequence.
  HeadScorer(std::int64_t length, bool causal);

  // Of cross-attention: T queries and S keys, of the longest sequences. What is said below of (T, T) holds
  // for (T, S).
  static HeadScorer cross(std::int64_t queries, std::int64_t keys);

  // weights (T, T) of a sequence; what lies beyond its n x n is not read. Throws ShapeError when the sequence
  // is longer than T, sees other keys, or the weights are not T x T; NumericError when the weights of a query
  // do not add up to 1 over the keys that it sees.
  void add(const ScoreTargets& targets, std::span<const double> weights);

  // All scores, in the order above.
  std::vector<HeadScore> scores() const;

  // (T, T), averaged over sequences of length T; zeros if there was none.
  std::vector<double> mean_weights() const;

 private:
  struct Mean {
    double value = 0, chance = 0, attainable = 0, eligible = 0;  // sums until divided
    HeadScore score(std::string_view name) const;
  };
  struct Positions;

  HeadScorer(std::int64_t queries, std::int64_t keys, Visibility);
  void add_row(const ScoreTargets& targets, std::int64_t query, const double* row);
  Positions positions() const;
  void add_positions(Positions&, std::int64_t queries, std::int64_t keys, double count) const;
  HeadScore positional_share() const;
  std::int64_t visible(std::int64_t query, std::int64_t keys) const {
    return visibility_ == Visibility::earlier ? query + 1 : keys;
  }
  std::int64_t full_sequences() const;  // those of length T

  std::int64_t queries_, keys_;  // T and T, or T and S
  Visibility visibility_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> sequences_;  // by queries and keys
  std::vector<double> offset_, position_;  // summed weight on key i + k, at k + T - 1, and on key k
  std::vector<double> full_;               // summed weights of sequences of length T
  double full_squares_ = 0;                // of their distance from uniform
  double mirror_ = 0, entropy_ = 0;        // summed
  std::int64_t entropy_queries_ = 0;
  std::array<Mean, ScoreTargets::kScores> content_{};
};

// The score of that name, a copy where the scores do not last. Throws Error when there is none.
const HeadScore& find_score(std::span<const HeadScore> scores, std::string_view name);
inline HeadScore find_score(std::vector<HeadScore>&& scores, std::string_view name) {
  return find_score(std::span<const HeadScore>(scores), name);
}

// How far a value is on the way from chance to the largest attainable: 0 at chance, 1 for a perfect head; 0
// where no head can be above chance, and where a number is not known.
double strength(double value, double chance, double attainable);

// Sets at_init to the values at step 0; `initial` are the scores of the same head and sequences. For a best k
// that is the value of the k that was best then.
void set_at_init(std::span<HeadScore> scores, std::span<const HeadScore> initial);

// {name: {"value", "chance", "at_init", "attainable", "eligible"}, ...}, with "at" where there is a best k;
// null for what is not a number.
Json to_json(std::span<const HeadScore> scores);

}  // namespace thimble
