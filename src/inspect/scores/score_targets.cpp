#include "thimble/inspect/scores/score_targets.h"

#include <algorithm>

#include "thimble/core/error.h"

namespace thimble {

namespace {

std::size_t to_index(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

ScoreTargets::ScoreTargets(std::int64_t queries, std::span<const std::int32_t> tokens, Visibility visibility,
                           std::span<const Dataset::Alignment> alignments,
                           std::span<const std::int32_t> special_tokens)
    : queries_(queries), keys_(std::ssize(tokens)), visibility_(visibility) {
  for (const Dataset::Alignment& alignment : alignments) {
    require<ShapeError>(
        alignment.query >= 0 && alignment.query < queries_ && alignment.key >= 0 && alignment.key < keys_,
        "score targets: alignment ({}, {}) is outside of {} queries and {} keys", alignment.query,
        alignment.key, queries_, keys_);
  }
  std::vector<std::int64_t> specials, targets;
  for (std::int64_t j = 0; j < keys_; ++j)
    if (std::ranges::find(special_tokens, tokens[to_index(j)]) != special_tokens.end()) specials.push_back(j);
  for (std::int64_t i = 0; i < queries_; ++i) {
    const auto end = std::ranges::lower_bound(specials, visible(i));
    add(special, i, std::span(specials.begin(), end));
    targets.clear();
    for (const Dataset::Alignment& alignment : alignments) {
      if (alignment.query == i && std::ranges::find(targets, alignment.key) == targets.end())
        targets.push_back(alignment.key);
    }
    add(task_target, i, targets);
  }
}

ScoreTargets::ScoreTargets(std::span<const std::int32_t> tokens, bool causal,
                           std::span<const Dataset::Alignment> alignments,
                           std::span<const std::int32_t> special_tokens)
    : ScoreTargets(std::ssize(tokens), tokens, causal ? Visibility::earlier : Visibility::all, alignments,
                   special_tokens) {
  add_tokens(tokens);
}

ScoreTargets ScoreTargets::cross(std::int64_t queries, std::span<const std::int32_t> source,
                                 std::span<const Dataset::Alignment> alignments,
                                 std::span<const std::int32_t> special_tokens) {
  return {queries, source, Visibility::source, alignments, special_tokens};
}

// Adds the scores that compare the token of a query with those of the keys.
void ScoreTargets::add_tokens(std::span<const std::int32_t> tokens) {
  std::vector<std::int64_t> same, earlier, after;
  for (std::int64_t i = 0; i < queries_; ++i) {
    for (std::vector<std::int64_t>* found : {&same, &earlier, &after}) found->clear();
    for (std::int64_t j = 0; j < keys_; ++j) {
      if (j == i || tokens[to_index(j)] != tokens[to_index(i)]) continue;
      same.push_back(j);
      if (j > i) continue;
      earlier.push_back(j);
      after.push_back(j + 1);
    }
    add(same_token, i, same);
    add(duplicate_token, i, earlier);
    add(induction, i, after);
  }
}

void ScoreTargets::add(Score score, std::int64_t query, std::span<const std::int64_t> keys) {
  if (keys.empty()) return;
  Sum& sum = sums_[score];
  const std::size_t before = sum.cells.size();
  for (const std::int64_t key : keys)
    if (key < visible(query)) sum.cells.push_back({query, key});
  const std::size_t found = sum.cells.size() - before;
  sum.eligible += 1;
  sum.chance += static_cast<double>(found) / static_cast<double>(visible(query));
  sum.attainable += found > 0 ? 1 : 0;
}

}  // namespace thimble
