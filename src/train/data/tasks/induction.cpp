#include <algorithm>

#include "engine/core/portable_math.h"
#include "thimble/train/task.h"

namespace thimble::tasks::induction {
namespace {

void sample(const TaskConfig& config, SampleRng& rng, Example& example) {
  sample_symbols(config, rng, example.input);
  const std::size_t period = example.input.size(), n = 2 * period - 1;
  example.input.resize(n);
  example.target.resize(n);
  for (std::size_t i = period; i < n; ++i) example.input[i] = example.input[i - period];
  for (std::size_t i = 0; i < n; ++i) example.target[i] = example.input[(i + 1) % period];
}

// Puts rounds of a random length, down to half of `length`, behind a random number of random tokens: neither a
// distance nor a position leads to the answer.
void vary(const TaskConfig& config, SampleRng& rng, Example& example) {
  const std::int64_t shortest = std::min((config.length + 1) / 2, config.shortest());
  const auto period = static_cast<std::size_t>(shortest + rng.below(config.length - shortest + 1));
  const auto n =
      2 * period - 1 +
      static_cast<std::size_t>(rng.below(2 * (config.length - static_cast<std::int64_t>(period)) + 1));
  auto& [input, target, attends] = example;
  input.resize(n);
  target.resize(n);
  for (std::int32_t& token : input) token = static_cast<std::int32_t>(rng.below(config.symbols));
  for (std::size_t i = n + 1 - period; i < n; ++i) input[i] = input[i - period];
  for (std::size_t i = 0; i + 1 < n; ++i) target[i] = input[i + 1];
  target[n - 1] = input[n - period];
}

ExampleSize size(const TaskConfig& config) { return {2 * config.length - 1, 2 * config.length - 1}; }

// Answers within the first round are independent of the tokens before them. With several lengths, the start
// of the second round must be guessed as well, so no model reaches this bound.
double floor(const TaskConfig& config) {
  const double mean = 0.5 * static_cast<double>(config.shortest() + config.length);
  return (mean - 1) / (2 * mean - 1) * portable::log(static_cast<double>(config.symbols));
}

// Returns the length of the two rounds at the end of the input: the largest one possible.
std::size_t find_period(std::span<const std::int32_t> input) {
  const std::size_t n = input.size();
  std::size_t period = (n + 1) / 2;
  while (!std::equal(input.end() - static_cast<std::ptrdiff_t>(period) + 1, input.end(),
                     input.end() - 2 * static_cast<std::ptrdiff_t>(period) + 1))
    --period;
  return period;
}

// The successor of the same token in the first round. The first answer of the second round follows from its
// position alone.
void relevant(const TaskConfig&, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  const std::size_t period = find_period(example.input);
  if (i + period > example.input.size()) keys.push_back({static_cast<std::int32_t>(i - period + 1)});
}

// Returns the first position whose token repeats a round; the end if none does. A sequence of the task ends in two rounds; one
// of the user's own may be periodic from its start, and end anywhere.
std::size_t first_repeated(const TaskConfig& config, std::span<const std::int32_t> input) {
  const std::size_t n = input.size(), period = find_period(input);
  const bool ends_in_two = static_cast<std::int64_t>(period) >= std::min<std::int64_t>(config.shortest(), 2);
  if (ends_in_two && static_cast<std::int64_t>(n) == 2 * config.length - 1) return n + 1 - period;
  for (std::size_t p = 2; p < n; ++p)
    if (std::equal(input.begin() + static_cast<std::ptrdiff_t>(p), input.end(), input.begin())) return p;
  return ends_in_two ? n + 1 - period : n;
}

// The first answer of the second round follows if all rounds have one length.
bool knowable(const TaskConfig& config, std::span<const std::int32_t> input, std::size_t i) {
  const std::size_t first = first_repeated(config, input);
  return i >= first || (i + 1 == first && config.shortest() == static_cast<std::int64_t>(first) &&
                        config.length == config.shortest());
}

}  // namespace

Task task() {
  return {
      .summary = "the next token of a random sequence that repeats",
      .definition =
          "Let r be `length` (or min_length to length) independent uniform symbols out of `symbols`. The "
          "input is r twice in a row without the last token, and the answer at every position is the token "
          "that comes next. Within the first round answers can only be guessed; after it each is the token "
          "that followed the same one in the first round, which an induction head finds. With a single "
          "length, attending a fixed distance back suffices; with several, only the content determines "
          "where to attend. Elhage et al. 2021, A Mathematical Framework for Transformer Circuits; Olsson "
          "et al. 2022, In-context Learning and Induction Heads; the setting with one length is that of a "
          "demonstration of TransformerLens (Nanda).",
      .keys = {"symbols", "length", "min_length"},
      .causal = true,
      .tokens = number_tokens,
      .size = size,
      .sample = sample,
      .distinct_inputs = count_symbol_sequences,
      .chance = one_in_symbols,
      .floor = floor,
      .knowable = knowable,
      .unknowable = "the first round can only be guessed",
      .relevant = relevant,
      .kinds = {"successor"},
      .candidates = all_positions,
      .vary = vary};
}

}  // namespace thimble::tasks::induction
