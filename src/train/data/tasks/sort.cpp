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

}  // namespace

Task task() {
  Task task = symbol_task<set_target>();
  task.summary = "the input in ascending order";
  task.definition =
      "Inputs are `length` (or min_length to length) independent uniform symbols; the answer is the same symbols, sorted. With an output per next token this is the demonstration of minGPT (Karpathy 2022).";
  task.relevant = answer_positions;
  task.kinds = {"source"};
  task.candidates = all_positions;
  return task;
}

}  // namespace thimble::tasks::sort
