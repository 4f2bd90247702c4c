#include "thimble/train/task.h"

namespace thimble::tasks::reverse {
namespace {

void set_target(const TaskConfig&, Example& example) {
  example.target.assign(example.input.rbegin(), example.input.rend());
}

void relevant(const TaskConfig&, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  keys.push_back({static_cast<std::int32_t>(example.input.size() - 1 - i)});
}

}  // namespace

Task task() {
  Task task = symbol_task<set_target>();
  task.summary = "the input backwards";
  task.definition =
      "Inputs are `length` (or min_length to length) independent uniform symbols; answer i is "
      "input n-1-i, n the input's length. As in tutorial 6 of the deep-learning course of the "
      "University of Amsterdam (Lippe 2020).";
  task.relevant = relevant;
  task.kinds = {"source"};
  return task;
}

}  // namespace thimble::tasks::reverse
