#include "thimble/train/task.h"

namespace thimble::tasks::copy {
namespace {

void set_target(const TaskConfig&, Example& example) { example.target = example.input; }

void relevant(const TaskConfig&, const Example&, std::size_t i, std::vector<Relevant>& keys) {
  keys.push_back({static_cast<std::int32_t>(i)});
}

}  // namespace

Task task() {
  return {.summary = "the input as it is",
          .definition =
              "Inputs are `length` (or min_length to length) independent uniform symbols; the answer "
              "is the same sequence.",
          .keys = {"symbols", "length", "min_length"},
          .tokens = number_tokens,
          .size = one_per_position,
          .sample = draw<sample_symbols, set_target>,
          .distinct_inputs = count_symbol_sequences,
          .chance = one_in_symbols,
          .floor = zero,
          .relevant = relevant,
          .kinds = {"source"},
          .vary = draw<vary_symbols, set_target>};
}

}  // namespace thimble::tasks::copy
