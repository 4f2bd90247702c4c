#include <fmt/format.h>

#include <algorithm>

#include "thimble/config/config.h"

namespace thimble {

Config task_config(const std::string& name, std::vector<std::string> overrides) {
  std::string yaml = "{}";
  if (std::ranges::find(task_names(), name) != task_names().end()) {
    constexpr std::string_view kPer[] = {"position", "sequence", "next"};  // in the order of Layout
    const Task& task = find_task(name);
    // The rows of a file are not read yet; any rows fit the layout `next`.
    const Layout layout = task.table != nullptr ? Layout::next : usual_layout(task.size({.name = name}));
    // The task is described, not trained, so any number of rows is enough.
    yaml = fmt::format(
        "train: {{batch: 1, shards: 1}}\nmodel: {{attention: {{mask: {}}}, output: {{per: {}}}}}",
        task.causal || layout == Layout::next ? "causal" : "none", kPer[static_cast<std::size_t>(layout)]);
  }
  overrides.insert(overrides.begin(), "task.name=" + name);
  return open_config_text(yaml, "tasks", overrides);
}

}  // namespace thimble
