#include "thimble/train/task.h"

namespace thimble::tasks::copy {
namespace {

void set_target(const TaskConfig&, Example& example) { example.target = example.input; }

void relevant(const TaskConfig&, const Example&, std::size_t i, std::vector<Relevant>& keys) {
  keys.push_back({static_cast<std::int32_t>(i)});
}

}  // namespace

Task task() {
  Task task = symbol_task<set_target>();
  task.summary = "the input as it is";
  task.definition =
      "Inputs are `length` (or min_length to length) independent uniform symbols; the answer is the same sequence.";
  task.relevant = relevant;
  task.kinds = {"source"};
  return task;
}

}  // namespace thimble::tasks::copy
