#include <algorithm>

#include "thimble/data/task.h"

namespace thimble::tasks {
namespace {

void set_target(Example& example) {
  example.target = example.input;
  std::sort(example.target.begin(), example.target.end());
}

void sample(const TaskConfig& config, SampleRng& rng, Example& example) {
  sample_symbols(config, rng, example.input);
  set_target(example);
}

// Answer i of uniform symbols is about i / n of all symbols, so that its position almost determines it; with
// symbols of a random range it does not.
void vary(const TaskConfig& config, SampleRng& rng, Example& example) {
  vary_symbols(config, rng, example.input);
  set_target(example);
}

// All positions of the answer in the input.
void relevant(const TaskConfig&, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  for (std::size_t j = 0; j < example.input.size(); ++j)
    if (example.input[j] == example.target[i]) keys.push_back({static_cast<std::int32_t>(j)});
}

}  // namespace

Task sort() {
  return {.summary = "the input in ascending order",
          .definition =
              "Inputs are `length` (or min_length to length) independent uniform symbols; the answer "
              "is the same symbols, sorted. With an output per next token this is the demonstration "
              "of minGPT (Karpathy 2022).",
          .keys = {"symbols", "length", "min_length"},
          .tokens = number_tokens,
          .size = one_per_position,
          .sample = sample,
          .distinct_inputs = count_symbol_sequences,
          .chance = one_in_symbols,
          .floor = zero,
          .relevant = relevant,
          .kinds = {"source"},
          .candidates = all_positions,
          .vary = vary};
}

}  // namespace thimble::tasks
