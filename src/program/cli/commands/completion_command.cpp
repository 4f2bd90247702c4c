#include <algorithm>
#include <iterator>

#include "program/cli/cli.h"
#include "program/cli/completion.h"
#include "program/cli/find_config.h"
#include "program/cli/help.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "train/files/version.h"

namespace thimble::cli {

namespace {

struct CompletionArguments {
  std::string shell, names;
  std::vector<std::string> directories;
};

// Appends the dotted keys of a section of the schema.
void append_keys(const Json& section, const std::string& parent, std::vector<std::string>& out) {
  for (const auto& [key, value] : section["properties"].items()) {
    if (value.contains("properties"))
      append_keys(value, parent + key + ".", out);
    else if (key != "base")
      out.push_back(parent + key + "=");
  }
}

int run(const CompletionArguments& arguments, const Command& program) {
  require<ConfigError>(arguments.shell.empty() != arguments.names.empty(),
                       "completion: give a shell (bash, zsh or fish) or --names");
  std::vector<std::string> names;
  if (arguments.names == "configs") names = config_names();
  if (arguments.names == "keys") append_keys(config_schema(), "", names);
  if (arguments.names == "runs")
    std::ranges::copy_if(arguments.directories, std::back_inserter(names),
                         [](const std::string& name) { return RunDirectory(name).is_run(); });
  for (const std::string& name : names) print_out("{}\n", name);
  if (arguments.shell == "bash") write_out(bash_completion(program));
  if (arguments.shell == "zsh") write_out(zsh_completion(program));
  if (arguments.shell == "fish") write_out(fish_completion(program));
  return kDone;
}

}  // namespace

void add_completion(Command& program) {
  Command& command = program.add_command("completion", "Print a shell completion script");
  auto arguments = std::make_shared<CompletionArguments>();
  command.add_option("SHELL", arguments->shell, "bash, zsh or fish")
      .value_name("")
      .one_of({"bash", "zsh", "fish"});
  command
      .add_option("--names", arguments->names,
                  "Print the names that the scripts complete; runs: those among the directories after --")
      .value_name("KIND")
      .one_of({"configs", "keys", "runs"});
  command.add_rest(arguments->directories);
  command.action([arguments, &program] { return run(*arguments, program); });
}

void add_manual(Command& program) {
  Command& command = program.add_command("manual", "Print the man page");
  command.action([&program] {
    write_out(manual_page(program, fmt::format("thimble {}", version())));
    return kDone;
  });
}

}  // namespace thimble::cli
