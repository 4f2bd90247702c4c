#include <nlohmann/json.hpp>

#include "cli/cli.h"

namespace thimble::cli {

void add_config(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("config", "Look at configs");
  command->require_subcommand(1);

  CLI::App* show = command->add_subcommand("show", "Print a config with every default filled in");
  auto arguments = std::make_shared<ConfigArguments>();
  auto output = std::make_shared<Output>();
  arguments->add_to(*show);
  output->add_to(*show);
  show->callback([arguments, output, &status] {
    const Config config = arguments->load();
    if (output->talks()) fmt::print("{}", to_yaml(config));
    output->write(to_json(config));
    status = kDone;
  });

  CLI::App* schema = command->add_subcommand("schema", "Print the JSON Schema of config files");
  schema->callback([&status] {
    fmt::print("{}\n", config_schema().dump(2));
    status = kDone;
  });
}

}  // namespace thimble::cli
