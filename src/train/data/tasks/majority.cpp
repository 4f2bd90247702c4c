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

}  // namespace

Task task() {
  Task task = symbol_task<set_target>();  // chance: renaming the symbols renames the answer
  task.summary = "the symbol that occurs most often";
  task.definition =
      "Inputs are `length` (or min_length to length) independent uniform symbols out of "
      "`symbols`; the one answer is the symbol that occurs most often, and of several that do, "
      "the one whose first occurrence is first. With 2 symbols and an odd length there are no "
      "ties: the majority language, which uniform attention decides (Merrill, Sabharwal and "
      "Smith, \"Saturated Transformers are Constant-Depth Threshold Circuits\", TACL 2022).";
  task.size = one_per_sequence;
  task.relevant = answer_positions;
  task.kinds = {"occurrence"};
  task.candidates = all_positions;
  return task;
}

}  // namespace thimble::tasks::majority
