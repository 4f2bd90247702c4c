// The cells of attention weights that the content-dependent scores of scores.h look for.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "thimble/data/dataset.h"

namespace thimble {

// The keys of a query.
enum class Visibility {
  all,      // of its own sequence
  earlier,  // of its own sequence, up to itself
  source,   // all of another sequence
};

// In how many and which cells of one sequence's weights the content-dependent scores look. Made once for a
// sequence and shared by the scorers of all heads.
class ScoreTargets {
 public:
  struct Cell {
    std::int64_t query, key;
  };
  // Of one score: the target keys that are seen, and the sums over eligible queries.
  struct Sum {
    std::vector<Cell> cells;
    double chance = 0, attainable = 0;
    std::int64_t eligible = 0;
  };
  enum Score { special, same_token, duplicate_token, induction, task_target, kScores };

  // tokens: those of the sequence, without padding. alignments: what the task names; naming a key twice is naming
  // it once. special_tokens: see special_tokens(TaskConfig). Throws ShapeError when an alignment is not within the
  // sequence.
  ScoreTargets(std::span<const std::int32_t> tokens, bool causal,
               std::span<const Dataset::Alignment> alignments,
               std::span<const std::int32_t> special_tokens = {});

  // Of so many queries that look at another sequence, the source.
  static ScoreTargets cross(std::int64_t queries, std::span<const std::int32_t> source,
                            std::span<const Dataset::Alignment> alignments,
                            std::span<const std::int32_t> special_tokens = {});

  std::int64_t queries() const { return queries_; }
  std::int64_t keys() const { return keys_; }  // n
  Visibility visibility() const { return visibility_; }
  // |V(i)|: a query sees keys 0 .. visible - 1.
  std::int64_t visible(std::int64_t query) const {
    return visibility_ == Visibility::earlier ? query + 1 : keys_;
  }
  const Sum& operator[](Score score) const { return sums_[score]; }

 private:
  ScoreTargets(std::int64_t queries, std::span<const std::int32_t> tokens, Visibility,
               std::span<const Dataset::Alignment> alignments, std::span<const std::int32_t> special_tokens);
  void add_tokens(std::span<const std::int32_t> tokens);
  void add(Score score, std::int64_t query, std::span<const std::int64_t> keys);

  std::int64_t queries_, keys_;
  Visibility visibility_;
  std::array<Sum, kScores> sums_;
};

}  // namespace thimble
