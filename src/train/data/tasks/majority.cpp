#include <algorithm>

#include "thimble/train/task.h"

namespace thimble::tasks::majority {
namespace {

void set_target(const TaskConfig&, Example& example) {
  std::int64_t most = 0;
  std::int32_t answer = 0;
  for (const std::int32_t token : example.input) {
    const std::int64_t count = std::ranges::count(example.input, token);
    if (count > most) answer = token;
    most = std::max(most, count);
  }
  example.target.assign(1, answer);
}

// All positions of the answer in the input.
void relevant(const TaskConfig&, const Example& example, std::size_t, std::vector<Relevant>& keys) {
  for (std::size_t j = 0; j < example.input.size(); ++j)
    if (example.input[j] == example.target[0]) keys.push_back({static_cast<std::int32_t>(j)});
}

}  // namespace

Task task() {
  return {.summary = "the symbol that occurs most often",
          .definition =
              "Inputs are `length` (or min_length to length) independent uniform symbols out of "
              "`symbols`; the one answer is the symbol that occurs most often, and of several that do, "
              "the one whose first occurrence is first. With 2 symbols and an odd length there are no "
              "ties: the majority language, which uniform attention decides (Merrill, Sabharwal and "
              "Smith, \"Saturated Transformers are Constant-Depth Threshold Circuits\", TACL 2022).",
          .keys = {"symbols", "length", "min_length"},
          .tokens = number_tokens,
          .size = one_per_sequence,
          .sample = draw<sample_symbols, set_target>,
          .distinct_inputs = count_symbol_sequences,
          .chance = one_in_symbols,  // renaming the symbols renames the answer
          .floor = zero,
          .relevant = relevant,
          .kinds = {"occurrence"},
          .candidates = all_positions,
          .vary = draw<vary_symbols, set_target>};
}

}  // namespace thimble::tasks::majority
