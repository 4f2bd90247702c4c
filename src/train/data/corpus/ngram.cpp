#include "train/data/corpus/ngram.h"

#include <algorithm>

namespace thimble {

namespace {

std::uint64_t key_of(std::uint32_t prefix, std::int32_t token) {
  return std::uint64_t{prefix} << 32 | static_cast<std::uint32_t>(token);
}

}  // namespace

std::uint32_t NgramModel::Level::find(std::uint32_t prefix, std::int32_t token) const {
  const std::uint64_t key = key_of(prefix, token);
  const auto found = std::ranges::lower_bound(keys, key);
  return found != keys.end() && *found == key ? static_cast<std::uint32_t>(found - keys.begin()) : kNone;
}

void NgramModel::Level::set_discounts() {
  std::array<double, 5> n{};  // n-grams by their count
  for (const std::uint32_t count : counts)
    if (count < n.size()) ++n[count];
  discounts = {0, 0.5, 1, 1.5};
  if (n[1] == 0 || n[2] == 0 || n[3] == 0) return;
  std::array<double, 4> found{};
  const double y = n[1] / (n[1] + 2 * n[2]);
  for (std::size_t k = 1; k <= 3; ++k) {
    const auto count = static_cast<double>(k);
    found[k] = count - (count + 1) * y * n[k + 1] / n[k];
    if (found[k] < 0 || found[k] > count) return;
  }
  discounts = found;
}

NgramModel::NgramModel(std::span<const std::int32_t> tokens, std::int64_t vocabulary, int order)
    : vocabulary_(vocabulary), levels_(static_cast<std::size_t>(order)) {
  // By position: the number of the n-gram that ends there, in the level of n; kNone: its document has no n
  // tokens before. And tails: an n-gram's number, without its first token, in the level below.
  std::vector<std::uint32_t> numbers(tokens.size()), tails, starts;
  const auto is_first = [&](std::size_t i) { return tokens[i] >= 0 && (i == 0 || tokens[i - 1] < 0); };
  for (std::size_t n = 1; n <= levels_.size(); ++n) {
    Level& level = levels_[n - 1];
    const auto prefix = [&](std::size_t i) {
      return tokens[i] < 0 ? kNone : n == 1 ? 0 : i == 0 || tokens[i - 1] < 0 ? kNone : numbers[i - 1];
    };
    std::vector<std::uint64_t> all;
    all.reserve(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (prefix(i) != kNone) all.push_back(key_of(prefix(i), tokens[i]));
    std::ranges::sort(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == 0 || all[i] != all[i - 1]) {
        level.keys.push_back(all[i]);
        level.counts.push_back(0);
      }
      ++level.counts.back();
    }
    all = {};
    for (std::size_t i = tokens.size(); i-- > 0;)  // from the end, as prefix(i) reads the number before it
      numbers[i] = prefix(i) == kNone ? kNone : level.find(prefix(i), tokens[i]);
    if (n == 1) {  // the first token of a document is context only
      for (std::size_t i = 0; i < tokens.size(); ++i)
        if (is_first(i)) --level.counts[numbers[i]];
    } else {
      const Level& below = levels_[n - 2];
      std::vector<std::uint32_t> own(level.keys.size()), counts(below.keys.size());
      for (std::size_t g = 0; g < own.size(); ++g) {
        const auto last = static_cast<std::int32_t>(level.keys[g] & kNone);
        own[g] = below.find(n == 2 ? 0 : tails[level.keys[g] >> 32], last);
        ++counts[own[g]];
      }
      for (const std::uint32_t number : starts) ++counts[number];
      levels_[n - 2].counts = std::move(counts);
      tails = std::move(own);
    }
    starts.clear();
    for (std::size_t i = 0; n > 1 && i + n <= tokens.size(); ++i)
      if (is_first(i) && numbers[i + n - 1] != kNone) starts.push_back(numbers[i + n - 1]);
  }
  for (Level& level : levels_) level.set_discounts();
  contexts_[0] = {context_of(levels_[0], 0)};
  if (levels_.size() > 1)
    for (std::uint32_t token = 0; token < levels_[0].keys.size(); ++token)
      contexts_[1].push_back(context_of(levels_[1], token));
}

NgramModel::Context NgramModel::context_of(const Level& level, std::uint32_t prefix) {
  Context context;
  auto i =
      static_cast<std::size_t>(std::ranges::lower_bound(level.keys, key_of(prefix, 0)) - level.keys.begin());
  for (; i < level.keys.size() && level.keys[i] >> 32 == prefix; ++i) {
    context.total += level.counts[i];
    context.discounted += level.discounts[std::min(level.counts[i], 3U)];
  }
  return context;
}

double NgramModel::probability(std::span<const std::int32_t> context, std::int32_t token) const {
  double p = 1 / static_cast<double>(vocabulary_);
  for (std::size_t n = 0; n <= context.size() && n < levels_.size(); ++n) {
    std::uint32_t prefix = 0;
    const auto before = context.last(n);
    for (std::size_t i = 0; i < n && prefix != kNone; ++i) prefix = levels_[i].find(prefix, before[i]);
    if (prefix == kNone) break;  // longer contexts do not occur, either
    const Level& level = levels_[n];
    const auto [total, discounted] = n < 2 ? contexts_[n][prefix] : context_of(level, prefix);
    if (total == 0) continue;
    const std::uint32_t number = level.find(prefix, token);
    const std::uint32_t count = number == kNone ? 0 : level.counts[number];
    p = (count - level.discounts[std::min(count, 3U)] + discounted * p) / total;
  }
  return p;
}

}  // namespace thimble
