#include <algorithm>
#include <array>
#include <cmath>

#include "engine/core/portable_math.h"
#include "thimble/engine/error.h"
#include "thimble/train/task.h"

namespace thimble::tasks::masked {
namespace {

// A transition from symbol s to s + step modulo the number of symbols, with its probability in quarters.
struct Move {
  std::int64_t step, quarters;
};
constexpr std::array<Move, 3> kMoves = {{{1, 2}, {2, 1}, {5, 1}}};
constexpr std::int64_t kMinSymbols = 5;  // below this, two of the steps are the same

void check(const TaskConfig& config) {
  require<DataError>(
      config.symbols >= kMinSymbols,
      "task masked: symbols {}: must be at least {}, so that three distinct symbols can follow",
      config.symbols, kMinSymbols);
  require<DataError>(config.length >= 3,
                     "task masked: length {}: must be at least 3: a masked token and two neighbors",
                     config.length);
}

// Returns the number of masked positions: 15 %, rounded, but at least 1.
std::int64_t masks(const TaskConfig& config) {
  return std::max<std::int64_t>(1, (15 * config.length + 50) / 100);
}

// Returns the number of places to choose masked positions from: inner positions, less one per masked position
// but the last, as each takes the position after it along.
std::int64_t mask_places(const TaskConfig& config) { return config.length - 1 - masks(config); }

std::int64_t draw_step(SampleRng& rng) {
  std::int64_t quarter = rng.below(4);
  std::size_t move = 0;
  for (; quarter >= kMoves[move].quarters; ++move) quarter -= kMoves[move].quarters;
  return kMoves[move].step;
}

// Replaces tokens by [MASK] and sets the target.
void mask(const TaskConfig& config, SampleRng& rng, Example& example) {
  std::vector<std::int32_t>&input = example.input, &target = example.target;
  target.assign(input.size(), kIgnore);
  // Selection sampling (Knuth, The Art of Computer Programming 2, algorithm 3.4.2S).
  std::int64_t missing = masks(config);
  std::size_t position = 1;
  for (std::int64_t left = mask_places(config); left > 0; --left, ++position) {
    if (rng.below(left) >= missing) continue;
    target[position] = input[position];
    input[position] = static_cast<std::int32_t>(config.symbols);
    --missing;
    ++position;
  }
}

void sample(const TaskConfig& config, SampleRng& rng, Example& example) {
  example.input.resize(static_cast<std::size_t>(config.length));
  std::int64_t symbol = rng.below(config.symbols);
  for (std::int32_t& token : example.input) {
    token = static_cast<std::int32_t>(symbol);
    symbol = (symbol + draw_step(rng)) % config.symbols;
  }
  mask(config, rng, example);
}

// Draws every token by itself, so that it says nothing about its neighbors.
void vary(const TaskConfig& config, SampleRng& rng, Example& example) {
  example.input.resize(static_cast<std::size_t>(config.length));
  for (std::int32_t& token : example.input) token = static_cast<std::int32_t>(rng.below(config.symbols));
  mask(config, rng, example);
}

std::vector<std::string> tokens(const TaskConfig& config) {
  std::vector<std::string> names = number_tokens(config);
  names.push_back("[MASK]");
  return names;
}

// Returns 16 times the probability that two moves lead to the symbol `distance` further on.
std::int64_t ways(const TaskConfig& config, std::int64_t distance) {
  std::int64_t count = 0;
  for (const Move& first : kMoves)
    for (const Move& second : kMoves)
      if ((first.step + second.step - distance) % config.symbols == 0)
        count += first.quarters * second.quarters;
  return count;
}

// Multiplies the ways to choose the masked positions by those to choose the visible symbols: three after a
// visible symbol, and after a masked one as many as two moves reach.
double distinct_inputs(const TaskConfig& config) {
  const std::int64_t masked = masks(config);
  double reached = 0;
  for (std::int64_t distance = 0; distance < std::min<std::int64_t>(config.symbols, 11); ++distance)
    if (ways(config, distance) > 0) ++reached;
  double count = static_cast<double>(config.symbols) *
                 portable::power(std::size(kMoves), config.length - 1 - 2 * masked) *
                 portable::power(reached, masked);
  for (std::int64_t i = 0; i < masked; ++i)
    count *= static_cast<double>(mask_places(config) - i) / static_cast<double>(i + 1);
  return std::round(count);
}

// Returns the entropy of a symbol given both neighbors, on which alone a symbol of a Markov chain depends.
double floor(const TaskConfig& config) {
  double entropy = 0;
  for (const Move& first : kMoves) {
    for (const Move& second : kMoves) {
      const auto count = static_cast<double>(first.quarters * second.quarters);
      const auto all = static_cast<double>(ways(config, first.step + second.step));
      entropy -= count / 16 * portable::log(count / all);
    }
  }
  return entropy;
}

bool knowable(const TaskConfig& config, std::span<const std::int32_t> input, std::size_t i) {
  return input[i] == config.symbols;
}

void relevant(const TaskConfig&, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  if (example.target[i] == kIgnore) return;
  const auto masked = static_cast<std::int32_t>(i);
  keys.insert(keys.end(), {{masked - 1, 0}, {masked + 1, 1}});
}

}  // namespace

Task task() {
  return {.summary = "the hidden tokens of a small language",
          .definition =
              "A sentence has `length` tokens of `symbols` kinds: a uniform one, then after each s one of "
              "s+1, s+2 and s+5 modulo `symbols`, with probabilities 1/2, 1/4 and 1/4. 15 % of the "
              "positions, to the nearest and at least one, are replaced by [MASK], never the first or the "
              "last and never two in a row, every such choice equally likely; there the answer is the "
              "token; other positions have no answer. Two different steps lead to the same symbol in "
              "either order, so no model can predict all answers: the floor is the entropy of a token "
              "given its neighbors, 5/8 ln 2 for 11 or more symbols. After Devlin et al. 2019, BERT, whose "
              "masked positions sometimes keep their token or get a random one; here they do not.",
          .keys = {"symbols", "length"},
          .sparse = true,
          .check = check,
          .tokens = tokens,
          .size = one_per_position,
          .sample = sample,
          .distinct_inputs = distinct_inputs,
          .chance = one_in_symbols,
          .floor = floor,
          .knowable = knowable,
          .special = {"[MASK]"},
          .relevant = relevant,
          .kinds = {"left neighbor", "right neighbor"},
          .vary = vary};
}

}  // namespace thimble::tasks::masked
