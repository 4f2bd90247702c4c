#include "thimble/data/task.h"

namespace thimble::tasks {
namespace {

void sample(const TaskConfig& config, Draws& draws, Example& example) {
  sample_symbols(config, draws, example.input);
  example.target.assign(example.input.rbegin(), example.input.rend());
}

}  // namespace

Task reverse() {
  return {.summary = "the input backwards", .sample = sample, .distinct_inputs = count_symbol_sequences};
}

}  // namespace thimble::tasks
