#include "thimble/train/task.h"

namespace thimble::tasks::shift {
namespace {

std::size_t source(const TaskConfig& config, std::size_t i, std::size_t n) {
  return (i + n - static_cast<std::size_t>(config.offset) % n) % n;
}

void set_target(const TaskConfig& config, Example& example) {
  const std::size_t n = example.input.size();
  example.target.resize(n);
  for (std::size_t i = 0; i < n; ++i) example.target[i] = example.input[source(config, i, n)];
}

void relevant(const TaskConfig& config, const Example& example, std::size_t i, std::vector<Relevant>& keys) {
  keys.push_back({static_cast<std::int32_t>(source(config, i, example.input.size()))});
}

}  // namespace

Task task() {
  Task task = symbol_task<set_target>();
  task.summary = "the input shifted by some positions, with wrap-around";
  task.definition =
      "Inputs are `length` (or min_length to length) independent uniform symbols out of `symbols`; "
      "answer i is input (i - offset) mod n, n the input's length: the sequence is rotated by "
      "`offset` positions to the right. A head that solves it attends a fixed distance back, as do "
      "the previous-token heads of Elhage et al., \"A Mathematical Framework for Transformer "
      "Circuits\" (2021).";
  task.keys = {"symbols", "length", "min_length", "offset"};
  task.relevant = relevant;
  task.kinds = {"source"};
  return task;
}

}  // namespace thimble::tasks::shift
