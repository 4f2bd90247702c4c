#include <nlohmann/json.hpp>

#include "cli/cli.h"

namespace thimble::cli {

void add_tasks(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("tasks", "List the tasks that a config can name");
  auto output = std::make_shared<Output>();
  output->add_to(*command);
  command->callback([output, &status] {
    nlohmann::ordered_json json;
    for (const std::string_view name : task_names()) {
      const std::string_view summary = find_task(name).summary;
      json[std::string(name)] = summary;
      if (output->talks()) fmt::print("{:<11} {}\n", name, summary);
    }
    output->write(json);
    status = kDone;
  });
}

}  // namespace thimble::cli
