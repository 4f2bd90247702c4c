#include "data/layout.h"

#include <algorithm>

#include "thimble/core/error.h"
#include "thimble/data/table.h"

namespace thimble {

void check_layout(const std::string& name, const Task& task, Layout layout, ExampleSize size) {
  switch (layout) {
    case Layout::position:
      return require<DataError>(size.input == size.target,
                                "task {}: {} targets for {} tokens: one output per position needs one each",
                                name, size.target, size.input);
    case Layout::sequence:
      return require<DataError>(size.target == 1,
                                "task {}: {} targets: one output per sequence needs exactly one", name,
                                size.target);
    case Layout::next:
      require<DataError>(!task.sparse,
                         "task {}: some positions have no answer to go on from; it needs one "
                         "output per position",
                         name);
      return require<DataError>(size.input >= 1 && size.target >= 1,
                                "task {}: next-token output needs an input and a target", name);
    case Layout::pairs:
      return require<DataError>(!task.sparse,
                                "task {}: some positions have no answer to go on from; it needs an encoder "
                                "and one output per position",
                                name);
  }
}

std::int64_t laid_out_length(Layout layout, ExampleSize size) {
  if (layout == Layout::pairs) return size.target + 1;
  return size.input + (layout == Layout::next ? size.target - 1 : 0);
}

Layout usual_layout(ExampleSize size) {
  if (size.target == 1) return Layout::sequence;
  return size.target == size.input ? Layout::position : Layout::next;
}

std::int64_t model_length(const TaskConfig& config, Layout layout) {
  const Task& task = checked_task(config);
  const ExampleSize size = task.size(config);
  if (task.table != nullptr) task.table(config).check(layout);
  check_layout(config.name, task, layout, size);
  return laid_out_length(layout, size);
}

std::int64_t source_length(const TaskConfig& config, Layout layout) {
  return layout == Layout::pairs ? checked_task(config).size(config).input : 0;
}

std::vector<std::string> token_names(const TaskConfig& config, Layout layout) {
  std::vector<std::string> names = checked_task(config).tokens(config);
  if (layout != Layout::pairs) return names;
  for (const char* mark : {"<begin>", "<end>"}) {
    require<DataError>(std::ranges::find(names, mark) == names.end(),
                       "task {}: {} is a token already, but marks answers of an encoder-decoder; rename it",
                       config.name, mark);
    names.emplace_back(mark);
  }
  return names;
}

}  // namespace thimble
