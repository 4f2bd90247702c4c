#include <fmt/format.h>

#include <algorithm>

#include "thimble/train/config.h"
#include "train/data/layout.h"

namespace thimble {

OpenConfig task_config(const std::string& name, std::vector<std::string> overrides) {
  std::string yaml = "{}";
  overrides.insert(overrides.begin(), "task.name=" + name);
  if (std::ranges::find(task_names(), name) != task_names().end()) {
    const Task& task = find_task(name);
    const bool is_file = task.open != nullptr;  // which model fits the rows of a file does not matter
    const Layout layout = is_file ? Layout::position : usual_layout(task.size({.name = name}));
    // The task is described, not trained, so any number of rows is enough.
    yaml =
        fmt::format("train: {{batch: 1, shards: 1}}\nmodel: {{attention: {{mask: {}}}, output: {{per: {}}}}}",
                    task.causal || layout == Layout::next ? "causal" : "none", layout_name(layout));
    if (is_file) {
      Config config = parse_config(yaml, "tasks", overrides);
      auto source = file_source(config.task, Layout::position);
      return OpenConfig(std::move(config), std::move(source));
    }
  }
  return open_data(parse_config(yaml, "tasks", overrides));
}

}  // namespace thimble
