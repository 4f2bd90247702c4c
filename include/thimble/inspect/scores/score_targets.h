// The target keys of the content-dependent scores of scores.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "thimble/data/dataset.h"

namespace thimble {

// The keys that a query can attend to.
enum class Visibility {
  all,      // all of its own sequence
  earlier,  // its own sequence up to itself
  source,   // all of the source
};

// The cells of one sequence's attention weights that the content-dependent scores sum. Computed once per
// sequence and shared by the scorers of all heads.
class ScoreTargets {
 public:
  struct Cell {
    std::int64_t query, key;
  };
  // The visible target keys of one score, and its sums over eligible queries.
  struct Sum {
    std::vector<Cell> cells;
    double chance = 0, attainable = 0;
    std::int64_t eligible = 0;
  };
  enum Score { special, same_token, duplicate_token, induction, task_target, kScores };

  // tokens: the sequence without padding. alignments: the keys that an answer depends on; duplicates count
  // once. special_tokens: see special_tokens(TaskConfig). Throws ShapeError when an alignment is outside the
  // sequence.
  ScoreTargets(std::span<const std::int32_t> tokens, bool causal,
               std::span<const Dataset::Alignment> alignments,
               std::span<const std::int32_t> special_tokens = {});

  // Returns the targets of cross-attention, for a number of queries on a source.
  static ScoreTargets cross(std::int64_t queries, std::span<const std::int32_t> source,
                            std::span<const Dataset::Alignment> alignments,
                            std::span<const std::int32_t> special_tokens = {});

  std::int64_t queries() const { return queries_; }
  std::int64_t keys() const { return keys_; }  // n
  Visibility visibility() const { return visibility_; }
  // Returns |V(i)|: query i can attend to keys 0 .. |V(i)| - 1.
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
