// The target keys of the content-dependent scores of scores.h, and the cells of their baselines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/train/dataset.h"

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
  // A cell that counts by a share.
  struct Rival {
    std::int64_t query, key;
    double share;
  };
  // The visible target keys of one score, and its sums over eligible queries.
  struct Sum {
    std::vector<Cell> cells;
    // The same_class baseline is the sum of the weights of the rivals, each by its share, and those of every key for
    // all visible queries of which it is no target, each by the share of the key; empty: none.
    std::vector<Rival> rivals;
    std::vector<double> other_queries;  // by key
    bool has_rivals = false;
    double chance = 0, attainable = 0;
    std::int64_t eligible = 0;
  };
  // Scores from kScores on are those of task targets of one kind; only where the task has several.
  enum ContentScore { special, same_token, duplicate_token, induction, task_target, kScores };
  static constexpr std::string_view kNames[kScores] = {"special", "same_token", "duplicate_token",
                                                       "induction", "task_target"};

  // The targets that the task states; duplicates count once.
  struct TaskTargets {
    std::span<const Alignment> alignments{};
    std::span<const Alignment> candidates{};  // none: there is no same_class baseline
    std::size_t kinds = 0;                    // of alignments
    std::size_t other_kinds = 0;              // of these, the last ones, not summed into task_target
    std::optional<std::vector<std::int64_t>> queries{};  // ascending, that count; without: all
  };

  // tokens: the sequence without padding. special_tokens: see special_tokens(TaskConfig). Throws ShapeError
  // when an alignment is outside the sequence.
  ScoreTargets(std::span<const std::int32_t> tokens, bool causal, const TaskTargets& task,
               std::span<const std::int32_t> special_tokens = {});

  // Returns the targets of cross-attention, for a number of queries on a source.
  static ScoreTargets cross(std::int64_t queries, std::span<const std::int32_t> source,
                            const TaskTargets& task, std::span<const std::int32_t> special_tokens = {});

  std::int64_t queries() const { return queries_; }
  std::int64_t keys() const { return keys_; }  // n
  Visibility visibility() const { return visibility_; }
  std::span<const std::int32_t> tokens() const { return tokens_; }  // of the keys
  // Returns |V(i)|: query i can attend to keys 0 .. |V(i)| - 1.
  std::int64_t visible(std::int64_t query) const {
    return visibility_ == Visibility::earlier ? query + 1 : keys_;
  }
  // Returns whether a query counts, and how many of those that can attend to a key do.
  bool counts(std::int64_t query) const { return counting_from(query) > counting_from(query + 1); }
  std::int64_t queries_of(std::int64_t key) const {
    return counting_from(visibility_ == Visibility::earlier ? key : 0);
  }
  // By ContentScore, and then by kind.
  const std::vector<Sum>& sums() const { return sums_; }

 private:
  ScoreTargets(std::int64_t queries, std::span<const std::int32_t> tokens, Visibility, const TaskTargets&,
               std::span<const std::int32_t> special_tokens);
  void add_tokens(std::span<const std::int32_t> tokens);
  void add_task(const TaskTargets&);
  std::int64_t add(Sum& sum, std::int64_t query, std::span<const std::int64_t> keys) const;
  void add_other_queries(Sum& sum) const;
  std::int64_t counting_from(std::int64_t query) const { return counting_[static_cast<std::size_t>(query)]; }

  std::int64_t queries_, keys_;
  Visibility visibility_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int64_t> counting_;  // how many queries count, from each one on
  std::vector<Sum> sums_;
};

// What the baselines of other sequences need, shared by the scorers of all heads: how many sequences have a
// target in a cell, by the size of the sequences, and how often tokens are visible.
class TargetCounts {
 public:
  struct Group {
    std::vector<std::int64_t> sequences;            // in which each query counts
    std::vector<std::vector<std::uint32_t>> cells;  // by score: (queries, keys); empty: no targets
  };

  void add(const ScoreTargets&);
  // Returns the counts of sequences of that size. Throws Error when there are none.
  const Group& of(const ScoreTargets&) const;

  using ByToken = std::map<std::int32_t, double>;
  // Return how many pairs of a query and a visible key have a token as key, at any position or at one.
  const ByToken& pairs() const { return pairs_; }
  const ByToken& pairs_at(std::int64_t position) const {
    static const ByToken none;
    const auto found = pairs_at_.find(position);
    return found == pairs_at_.end() ? none : found->second;
  }

 private:
  ByToken pairs_;
  std::map<std::int64_t, ByToken> pairs_at_;
  std::map<std::pair<std::int64_t, std::int64_t>, Group> groups_;
};

}  // namespace thimble
