#include <fmt/format.h>

#include <algorithm>

#include "thimble/train/config.h"
#include "train/data/rows.h"

namespace thimble {

Config task_config(const std::string& name, std::vector<std::string> overrides) {
  std::string yaml = "{}";
  overrides.insert(overrides.begin(), "task.name=" + name);
  if (std::ranges::find(task_names(), name) != task_names().end()) {
    constexpr std::string_view kPer[] = {"position", "sequence", "next"};  // in the order of Layout
    const Task& task = find_task(name);
    if (task.open != nullptr) {  // which model fits the rows of a file does not matter
      const std::string mask = task.causal ? "causal" : "none";
      Config config = parse_config(
          fmt::format("train: {{batch: 1, shards: 1}}\nmodel: {{attention: {{mask: {}}}}}", mask), "tasks",
          overrides);
      config.task.rows = open_rows(config.task, Layout::position);
      return config;
    }
    const Layout layout = usual_layout(task.size({.name = name}));
    // The task is described, not trained, so any number of rows is enough.
    yaml = fmt::format(
        "train: {{batch: 1, shards: 1}}\nmodel: {{attention: {{mask: {}}}, output: {{per: {}}}}}",
        task.causal || layout == Layout::next ? "causal" : "none", kPer[static_cast<std::size_t>(layout)]);
  }
  return open_config_text(yaml, "tasks", overrides);
}

}  // namespace thimble
