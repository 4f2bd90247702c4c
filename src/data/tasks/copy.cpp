#include "thimble/data/task.h"

namespace thimble::tasks {
namespace {

void sample(const TaskConfig& config, Draws& draws, Example& example) {
  sample_symbols(config, draws, example.input);
  example.target = example.input;
}

}  // namespace

Task copy() {
  return {.summary = "the input as it is", .sample = sample, .distinct_inputs = count_symbol_sequences};
}

}  // namespace thimble::tasks
