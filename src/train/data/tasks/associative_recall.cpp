#include <utility>

#include "engine/core/portable_math.h"
#include "thimble/engine/error.h"
#include "thimble/train/task.h"

namespace thimble::tasks::associative_recall {
namespace {

void check(const TaskConfig& config) {
  require<DataError>(config.symbols % 2 == 0,
                     "task associative_recall: symbols {}: must be even, half are keys and half are values",
                     config.symbols);
  require<DataError>(
      config.pairs <= config.symbols / 2,
      "task associative_recall: pairs {}: {} symbols have {} keys; use more symbols or fewer pairs",
      config.pairs, config.symbols, config.symbols / 2);
  require<DataError>(
      config.pairs <= config.length / 4,
      "task associative_recall: length {}: {} pairs and their queries need at least {}; use longer inputs or fewer pairs",
      config.length, config.pairs, 4 * config.pairs);
}

// Returns the number of places for queries: every other position after the pairs.
std::int64_t query_places(const TaskConfig& config) { return (config.length - 2 * config.pairs) / 2; }

// Sets every other token from out[0] to distinct ones of first .. first+n-1, in uniform order (Floyd's
// sampling, Bentley and Floyd 1987, then a shuffle).
void draw_distinct(SampleRng& rng, std::int64_t n, std::int64_t first, std::int64_t count,
                   std::int32_t* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t last = n - count + i;
    auto token = static_cast<std::int32_t>(first + rng.below(last + 1));
    for (std::int64_t j = 0; j < i; ++j)
      if (out[2 * j] == token) token = static_cast<std::int32_t>(first + last);
    out[2 * i] = token;
  }
  for (std::int64_t i = count - 1; i > 0; --i) std::swap(out[2 * i], out[2 * rng.below(i + 1)]);
}

// Returns the weight of place i, proportional to (i+1)^(a-1), as a whole number; their sum fits
// SampleRng::below.
std::int32_t place_weight(std::int64_t place) {
  constexpr double kPower = 0.01, kScale = 1 << 26;
  return 1 + static_cast<std::int32_t>(kScale * portable::pow(static_cast<double>(place + 1), kPower - 1));
}

// Draws an example whose queries are at places with these weights.
void draw(const TaskConfig& config, SampleRng& rng, std::int32_t (*weight)(std::int64_t place),
          Example& example) {
  const std::int64_t values = config.symbols / 2, places = query_places(config), pairs_end = 2 * config.pairs;
  example.input.resize(static_cast<std::size_t>(config.length));
  example.target.assign(static_cast<std::size_t>(config.length), kIgnore);
  std::int32_t *const input = example.input.data(), *const target = example.target.data();
  draw_distinct(rng, values, 0, config.pairs, input);
  draw_distinct(rng, values, values, config.pairs, input + 1);
  for (std::int64_t i = pairs_end; i < config.length; ++i)
    input[i] = static_cast<std::int32_t>(rng.below(config.symbols));

  // Answers are at even positions; until all are drawn, odd positions hold the weights of places.
  std::int64_t total = 0;
  for (std::int64_t place = 0; place < places; ++place) total += target[2 * place + 1] = weight(place);
  for (std::int64_t pair = 0; pair < config.pairs; ++pair) {
    std::int64_t left = rng.below(total), place = 0;
    for (; left >= target[2 * place + 1]; ++place) left -= target[2 * place + 1];
    total -= std::exchange(target[2 * place + 1], 0);
    input[pairs_end + 2 * place] = input[2 * pair];
    target[pairs_end + 2 * place] = input[2 * pair + 1];
  }
  for (std::int64_t place = 0; place < places; ++place) target[2 * place + 1] = kIgnore;
}

void sample(const TaskConfig& config, SampleRng& rng, Example& example) {
  draw(config, rng, place_weight, example);
}

// Puts queries at uniform places, so that they are as often far from the pairs as near.
void vary(const TaskConfig& config, SampleRng& rng, Example& example) {
  draw(
      config, rng, [](std::int64_t) { return 1; }, example);
}

std::vector<std::string> tokens(const TaskConfig& config) {
  std::vector<std::string> names;
  for (const char* kind : {"k", "v"})
    for (std::int64_t i = 0; i < config.symbols / 2; ++i) names.push_back(kind + std::to_string(i));
  return names;
}

// Multiplies the ways to choose the pairs by those to fill the rest. ways[k]: to fill the places so far with
// k of the keys among them.
double distinct_inputs(const TaskConfig& config) {
  const auto symbols = static_cast<double>(config.symbols), keys = static_cast<double>(config.pairs);
  std::vector<double> ways(static_cast<std::size_t>(config.pairs) + 1);
  ways[0] = 1;
  const std::int64_t places = query_places(config);
  for (std::int64_t place = 0; place < places; ++place) {
    double one_less = 0;
    for (std::size_t k = 0; k < ways.size(); ++k) {
      const auto occur = static_cast<double>(k);
      const double same = ways[k];
      ways[k] = same * (symbols - keys + occur) + one_less * (keys - occur + 1);
      one_less = same;
    }
  }
  double count = ways.back() * portable::power(symbols, config.length - 2 * config.pairs - places);
  for (double chosen = 0; chosen < keys; ++chosen) count *= portable::power(symbols / 2 - chosen, 2);
  return count;
}

double chance(const TaskConfig& config) { return 2 / static_cast<double>(config.symbols); }

// A key that comes again has an answer, which the task does not always ask for.
bool knowable(const TaskConfig& config, std::span<const std::int32_t> input, std::size_t i) {
  const std::size_t first = 2 * static_cast<std::size_t>(config.pairs);
  for (std::size_t key = 0; key < first && i >= first; key += 2)
    if (input[key] == input[i]) return true;
  return false;
}

// The position of the value in its pair.
void relevant(const TaskConfig& config, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  if (example.target[i] == kIgnore) return;
  for (std::int64_t pair = 0; pair < config.pairs; ++pair)
    if (example.input[static_cast<std::size_t>(2 * pair + 1)] == example.target[i])
      keys.push_back({static_cast<std::int32_t>(2 * pair + 1)});
}

void candidates(const TaskConfig& config, const Example&, std::size_t, std::vector<std::int32_t>& keys) {
  for (std::int64_t pair = 0; pair < config.pairs; ++pair)
    keys.push_back(static_cast<std::int32_t>(2 * pair + 1));
}

}  // namespace

Task task() {
  return {.summary = "the value that was paired with a key (MQAR)",
          .definition =
              "The first half of the `symbols` tokens are keys, the second half values. The input, "
              "`length` tokens, begins with `pairs` pairs of a key and a value, all distinct. After them "
              "each of these keys occurs once more, where the answer is its value; other positions have no "
              "answer. Queries are an even number of tokens after the pairs: places 0, 1, ... are every "
              "other token, and each key in turn draws a free one with probability proportional to (place "
              "+ 1)^(0.01 - 1). The other positions are uniform tokens of both kinds, so an answer follows "
              "its query only by chance, and either mask is possible. This is multi-query associative "
              "recall, Arora et al. 2023, Zoology, with power_a 0.01 and random non-queries; there token 0 "
              "is not a key, here it is.",
          .keys = {"symbols", "length", "pairs"},
          .sparse = true,
          .check = check,
          .tokens = tokens,
          .size = one_per_position,
          .sample = sample,
          .distinct_inputs = distinct_inputs,
          .chance = chance,
          .knowable = knowable,
          .relevant = relevant,
          .kinds = {"value of key"},
          .candidates = candidates,
          .vary = vary};
}

}  // namespace thimble::tasks::associative_recall
