#include "inspect/patching/corruption.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "inspect/effects/measure_effects.h"
#include "inspect/trace/permutation.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/patch.h"

namespace thimble {

inline namespace THIMBLE_PRECISION {

namespace {

// A query whose answer stands behind the earlier occurrence of its own token.
struct Lookup {
  std::size_t query, match;
  bool is_only;  // whether its token occurs at these two positions alone
};

// Returns the lookups of a sequence; nothing if one of the keys that the task states for its answers is none.
std::optional<std::vector<Lookup>> lookups_of(const Dataset& dataset, const Example& example) {
  std::vector<Lookup> lookups;
  if (dataset.layout() != Layout::position) return {};
  const std::vector<std::int32_t>& input = example.input;
  for (const Alignment& a : dataset.alignments(example)) {
    const auto query = static_cast<std::size_t>(a.query), key = static_cast<std::size_t>(a.key);
    if (key == 0 || key > query || input[key - 1] != input[query] || input[key] != example.target[query])
      return {};
    lookups.push_back({query, key - 1, std::ranges::count(input, input[query]) == 2});
  }
  return lookups;
}

// Exchanges the tokens of two matches, chosen at random, and moves the answers with them. Returns whether there are two.
bool exchange_matches(std::span<const Lookup> lookups, std::uint64_t number, Example& example) {
  std::vector<Lookup> free;
  for (const std::size_t i : random_order(lookups.size(), number))
    if (lookups[i].is_only) free.push_back(lookups[i]);
  const auto& [input, target, attends] = example;
  for (std::size_t i = 1; i < free.size(); ++i) {
    const std::size_t one = free[0].match, other = free[i].match;
    if (target[free[0].query] == target[free[i].query]) continue;
    std::swap(example.input[one], example.input[other]);
    for (const Lookup& lookup : lookups) {
      const std::size_t match = lookup.match == one ? other : lookup.match == other ? one : lookup.match;
      example.target[lookup.query] = input[match + 1];
    }
    return true;
  }
  return false;
}

// Shuffles the input. Returns whether it changed.
bool shuffle(const Dataset& dataset, std::uint64_t number, Example& example) {
  const std::vector<std::int32_t> before = example.input;
  const std::int32_t boundary = dataset.source().boundary();
  const std::size_t first = boundary != kIgnore && !before.empty() && before[0] == boundary ? 1 : 0;
  const std::vector<std::size_t> order = random_order(before.size() - first, number);
  for (std::size_t i = 0; i < order.size(); ++i) example.input[first + i] = before[first + order[i]];
  return example.input != before;
}

// Calls corrupt(i, example) on a copy of each sequence, until `count` have been changed.
std::vector<ExamplePair> change(const Evaluator& evaluator, std::int64_t count, const std::string& corruption,
                                const std::string& remedy,
                                const std::function<bool(std::int64_t, Example&)>& corrupt) {
  std::vector<ExamplePair> pairs;
  for (std::int64_t i = 0; i < evaluator.sequences() && std::ssize(pairs) < count; ++i) {
    ExamplePair pair;
    evaluator.dataset().example(evaluator.split(), i, pair.clean);
    pair.corrupted = pair.clean;
    if (corrupt(i, pair.corrupted)) pairs.push_back(std::move(pair));
  }
  require<DataError>(!pairs.empty(), "patching: --corruption {} changes none of {} test sequences: {}",
                     corruption.find(' ') == corruption.npos ? corruption : '"' + corruption + '"',
                     evaluator.sequences(), remedy);
  return pairs;
}

}  // namespace

std::vector<ExamplePair> draw_examples(const Evaluator& evaluator, const std::string& corruption,
                                       std::int64_t count) {
  check_corruption(corruption);
  const Dataset& dataset = evaluator.dataset();
  const std::uint64_t seed = evaluator.config().train.seed;
  if (corruption == "order")
    return change(evaluator, count, corruption, "their tokens are all the same; use --corruption=resample",
                  [&](std::int64_t i, Example& example) {
                    return shuffle(dataset, seed + static_cast<std::uint64_t>(i), example);
                  });
  if (corruption == "target") {
    bool finds = true;  // whether all answers of the task are found that way
    const auto exchange = [&](std::int64_t i, Example& example) {
      const auto lookups = lookups_of(dataset, example);
      finds &= lookups.has_value();
      return finds && exchange_matches(*lookups, seed + static_cast<std::uint64_t>(i), example);
    };
    const std::string rule =
        "it requires a task in which every answer follows an earlier occurrence of its query's token, as in associative_recall and induction, and two such tokens that occur nowhere else; use --corruption=order or --corruption=resample";
    std::vector<ExamplePair> pairs = change(evaluator, count, corruption, rule, exchange);
    require<DataError>(finds, "patching: --corruption target: {}", rule);
    return pairs;
  }
  const std::optional<std::int64_t> replaced = replaced_position(corruption);
  if (!replaced) return examples_of(evaluator, draw_pairs(evaluator, count));

  const auto position = static_cast<std::size_t>(*replaced);
  const std::vector<std::int64_t> next =
      resampling_pairs(std::vector<std::int32_t>(static_cast<std::size_t>(evaluator.sequences())), seed);
  return change(evaluator, count, corruption,
                fmt::format("no two have different tokens at position {}; positions count from 0, up to {}",
                            position, dataset.source().longest().input - 1),
                [&](std::int64_t i, Example& example) {
                  if (position >= example.input.size()) return false;
                  Example donor;
                  for (std::int64_t other = next[static_cast<std::size_t>(i)]; other != i;
                       other = next[static_cast<std::size_t>(other)]) {
                    dataset.example(evaluator.split(), other, donor);
                    if (position >= donor.input.size() || donor.input[position] == example.input[position])
                      continue;
                    example.input[position] = donor.input[position];
                    return true;
                  }
                  return false;
                });
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
