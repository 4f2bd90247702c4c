#include <algorithm>

#include "thimble/data/task.h"

namespace thimble::tasks {
namespace {

void sample(const TaskConfig& config, Draws& draws, Example& example) {
  sample_symbols(config, draws, example.input);
  example.target = example.input;
  std::sort(example.target.begin(), example.target.end());
}

}  // namespace

Task sort() {
  return {
      .summary = "the input in ascending order", .sample = sample, .distinct_inputs = count_symbol_sequences};
}

}  // namespace thimble::tasks
