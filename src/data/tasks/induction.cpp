#include <cmath>

#include "thimble/data/task.h"

namespace thimble::tasks {
namespace {

void sample(const TaskConfig& config, Draws& draws, Example& example) {
  const auto period = static_cast<std::size_t>(config.length);
  example.input.resize(2 * period - 1);
  example.target.resize(2 * period - 1);
  for (std::size_t i = 0; i < period; ++i)
    example.input[i] = static_cast<std::int32_t>(draws.below(config.symbols));
  for (std::size_t i = period; i < 2 * period - 1; ++i) example.input[i] = example.input[i - period];
  for (std::size_t i = 0; i < 2 * period - 1; ++i) example.target[i] = example.input[(i + 1) % period];
}

ExampleSize size(const TaskConfig& config) { return {2 * config.length - 1, 2 * config.length - 1}; }

double distinct_inputs(const TaskConfig& config) {
  return std::pow(static_cast<double>(config.symbols), static_cast<double>(config.length));
}

// The first length - 1 answers are independent of all that stands before them.
double floor(const TaskConfig& config) {
  return static_cast<double>(config.length - 1) / static_cast<double>(2 * config.length - 1) *
         std::log(static_cast<double>(config.symbols));
}

// What followed the last time. The first answer of the second round is known from its position alone.
void relevant(const TaskConfig& config, const Example&, std::size_t i, std::vector<std::int32_t>& keys) {
  const auto period = static_cast<std::size_t>(config.length);
  if (i >= period) keys.push_back(static_cast<std::int32_t>(i - period + 1));
}

}  // namespace

Task induction() {
  return {.summary = "the next token of a random sequence that repeats",
          .definition =
              "Let r be `length` independent uniform symbols, of `symbols` there are. The input is r "
              "twice in a row without the last token, 2 length - 1 tokens, and the answer at every "
              "position is the token that comes next. The first length - 1 answers can only be guessed; "
              "from there on each is the token that followed the same one in the first round, which an "
              "induction head looks up. Elhage et al. 2021, A Mathematical Framework for Transformer "
              "Circuits; Olsson et al. 2022, In-context Learning and Induction Heads; the setting is "
              "that of a demonstration of TransformerLens (Nanda).",
          .keys = {"symbols", "length"},
          .causal = true,
          .tokens = number_tokens,
          .size = size,
          .sample = sample,
          .distinct_inputs = distinct_inputs,
          .chance = one_in_symbols,
          .floor = floor,
          .relevant = relevant};
}

}  // namespace thimble::tasks
