#include <algorithm>

#include "thimble/train/task.h"

namespace thimble::tasks::sort {
namespace {

// Answer i of uniform symbols is about i / n of all symbols, so that its position almost determines it; with
// vary_symbols it does not.
void set_target(const TaskConfig&, Example& example) {
  example.target = example.input;
  std::sort(example.target.begin(), example.target.end());
}

// All positions of the answer in the input.
void relevant(const TaskConfig&, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  for (std::size_t j = 0; j < example.input.size(); ++j)
    if (example.input[j] == example.target[i]) keys.push_back({static_cast<std::int32_t>(j)});
}

}  // namespace

Task task() {
  return {.summary = "the input in ascending order",
          .definition =
              "Inputs are `length` (or min_length to length) independent uniform symbols; the answer "
              "is the same symbols, sorted. With an output per next token this is the demonstration "
              "of minGPT (Karpathy 2022).",
          .keys = {"symbols", "length", "min_length"},
          .tokens = number_tokens,
          .size = one_per_position,
          .sample = draw<sample_symbols, set_target>,
          .distinct_inputs = count_symbol_sequences,
          .chance = one_in_symbols,
          .floor = zero,
          .relevant = relevant,
          .kinds = {"source"},
          .candidates = all_positions,
          .vary = draw<vary_symbols, set_target>};
}

}  // namespace thimble::tasks::sort
