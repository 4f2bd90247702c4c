#include "thimble/inspect/score_targets.h"

#include <algorithm>
#include <cstdint>

#include "thimble/engine/error.h"

namespace thimble {

namespace {

std::size_t to_index(std::int64_t index) { return static_cast<std::size_t>(index); }

// Returns the distinct keys that the alignments give each query, ascending, of the kinds first .. end - 1.
std::vector<std::vector<std::int64_t>> keys_by_query(std::span<const Alignment> alignments,
                                                     std::int64_t queries, std::size_t first = 0,
                                                     std::size_t end = SIZE_MAX) {
  std::vector<std::vector<std::int64_t>> all(to_index(queries));
  for (const Alignment& a : alignments)
    if (to_index(a.kind) >= first && to_index(a.kind) < end) all[to_index(a.query)].push_back(a.key);
  for (std::vector<std::int64_t>& keys : all) {
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
  return all;
}

}  // namespace

ScoreTargets::ScoreTargets(std::int64_t queries, std::span<const std::int32_t> tokens, Visibility visibility,
                           const TaskTargets& task, std::span<const std::int32_t> special_tokens)
    : queries_(queries),
      keys_(std::ssize(tokens)),
      visibility_(visibility),
      tokens_(tokens.begin(), tokens.end()),
      counting_(to_index(queries + 1)),
      sums_(kScores + (task.kinds > 1 ? task.kinds : 0)) {
  for (std::int64_t i = queries - 1; i >= 0; --i) {
    const bool is_counted = !task.queries || std::ranges::binary_search(*task.queries, i);
    counting_[to_index(i)] = counting_[to_index(i + 1)] + (is_counted ? 1 : 0);
  }
  for (const auto& alignments : {task.alignments, task.candidates}) {
    for (const Alignment& a : alignments) {
      require<ShapeError>(a.query >= 0 && a.query < queries_ && a.key >= 0 && a.key < keys_,
                          "score targets: alignment ({}, {}) is outside of {} queries and {} keys", a.query,
                          a.key, queries_, keys_);
    }
  }
  std::vector<std::int64_t> specials;
  for (std::int64_t j = 0; j < keys_; ++j)
    if (std::ranges::find(special_tokens, tokens[to_index(j)]) != special_tokens.end()) specials.push_back(j);
  for (std::int64_t i = 0; i < queries_; ++i) {
    const auto end = std::ranges::lower_bound(specials, visible(i));
    add(sums_[special], i, std::span(specials.begin(), end));
  }
  add_task(task);
}

ScoreTargets::ScoreTargets(std::span<const std::int32_t> tokens, bool causal, const TaskTargets& task,
                           std::span<const std::int32_t> special_tokens)
    : ScoreTargets(std::ssize(tokens), tokens, causal ? Visibility::earlier : Visibility::all, task,
                   special_tokens) {
  add_tokens(tokens);
}

ScoreTargets ScoreTargets::cross(std::int64_t queries, std::span<const std::int32_t> source,
                                 const TaskTargets& task, std::span<const std::int32_t> special_tokens) {
  return {queries, source, Visibility::source, task, special_tokens};
}

// Adds the targets that the task states, as a whole and by kind. The rivals of a query's targets are its candidates:
// a head that attends to the class and not to the member has targets / candidates of its weight on the targets.
void ScoreTargets::add_task(const TaskTargets& task) {
  std::vector<std::vector<std::int64_t>> candidates = keys_by_query(task.candidates, queries_);
  for (std::int64_t i = 0; i < queries_; ++i)
    std::erase_if(candidates[to_index(i)], [&](std::int64_t key) { return key >= visible(i); });
  for (std::size_t s = task_target; s < sums_.size(); ++s) {
    Sum& sum = sums_[s];
    const bool is_sum = s == task_target;
    const std::size_t first = is_sum ? 0 : s - kScores,
                      end = is_sum ? std::max<std::size_t>(task.kinds, 1) - task.other_kinds : first + 1;
    const auto targets = keys_by_query(task.alignments, queries_, first, end);
    sum.has_rivals = !task.candidates.empty();
    for (std::int64_t i = 0; i < queries_; ++i) {
      const std::int64_t found = add(sum, i, targets[to_index(i)]);
      const std::vector<std::int64_t>& rivals = candidates[to_index(i)];
      for (const std::int64_t key : rivals)
        sum.rivals.push_back({i, key, static_cast<double>(found) / static_cast<double>(rivals.size())});
    }
  }
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
    add(sums_[same_token], i, same);
    add(sums_[duplicate_token], i, earlier);
    add(sums_[induction], i, after);
  }
  for (const ContentScore score : {same_token, duplicate_token, induction}) add_other_queries(sums_[score]);
}

// Compares a target with the same key for the queries of which it is no target: their mean weight is what the key
// gets whatever the token of the query. As each of the key's targets has that mean as its baseline, each of the other
// queries counts by targets / others. A target of all queries is its own rival.
void ScoreTargets::add_other_queries(Sum& sum) const {
  sum.has_rivals = true;
  std::vector<double> targets(to_index(keys_), 0);
  for (const auto& [query, key] : sum.cells) ++targets[to_index(key)];
  for (std::int64_t j = 0; j < keys_; ++j) {
    const double others = static_cast<double>(queries_of(j)) - targets[to_index(j)];
    sum.other_queries.push_back(others > 0 ? targets[to_index(j)] / others : 0);
  }
  for (const auto& [query, key] : sum.cells)
    if (sum.other_queries[to_index(key)] == 0) sum.rivals.push_back({query, key, 1});
}

// Adds the targets of a query and returns how many of them are visible.
std::int64_t ScoreTargets::add(Sum& sum, std::int64_t query, std::span<const std::int64_t> keys) const {
  if (keys.empty() || !counts(query)) return 0;
  const std::size_t before = sum.cells.size();
  for (const std::int64_t key : keys)
    if (key < visible(query)) sum.cells.push_back({query, key});
  const auto found = static_cast<std::int64_t>(sum.cells.size() - before);
  sum.eligible += 1;
  sum.chance += static_cast<double>(found) / static_cast<double>(visible(query));
  sum.attainable += found > 0 ? 1 : 0;
  return found;
}

void TargetCounts::add(const ScoreTargets& targets) {
  Group& group = groups_[{targets.queries(), targets.keys()}];
  group.sequences.resize(to_index(targets.queries()));
  for (std::int64_t i = 0; i < targets.queries(); ++i)
    group.sequences[to_index(i)] += targets.counts(i) ? 1 : 0;
  for (std::int64_t k = 0; k < targets.keys(); ++k) {
    const std::int32_t token = targets.tokens()[to_index(k)];
    const auto queries = static_cast<double>(targets.queries_of(k));
    pairs_[token] += queries;
    pairs_at_[k][token] += queries;
  }
  group.cells.resize(targets.sums().size());
  for (std::size_t s = 0; s < group.cells.size(); ++s) {
    const ScoreTargets::Sum& sum = targets.sums()[s];
    if (!sum.cells.empty()) group.cells[s].resize(to_index(targets.queries() * targets.keys()));
    for (const auto& [query, key] : sum.cells) ++group.cells[s][to_index(query * targets.keys() + key)];
  }
}

const TargetCounts::Group& TargetCounts::of(const ScoreTargets& targets) const {
  const auto found = groups_.find({targets.queries(), targets.keys()});
  require<Error>(found != groups_.end(), "target counts: no sequence has {} queries and {} keys",
                 targets.queries(), targets.keys());
  return found->second;
}

}  // namespace thimble
