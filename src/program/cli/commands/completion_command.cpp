#include <algorithm>

#include "program/cli/cli.h"
#include "program/cli/completion.h"
#include "program/cli/help.h"
#include "thimble/engine/error.h"
#include "train/files/text/text.h"
#include "train/files/version.h"

namespace thimble::cli {

void add_help(Command& program) {
  Command& command = program.add_command("help", "Print the help of a command");
  auto names = std::make_shared<std::vector<std::string>>();
  std::vector<std::string> all;
  for (const Command& other : program.commands())
    all.push_back(other.path().substr(program.path().size() + 1));
  command.add_option("COMMAND", *names, "The command, such as train or config show (default: thimble)")
      .suggests(all);
  command.action([names, &program] {
    const Command* named = &program;
    for (const std::string& name : *names) {
      const Command* below = named->find(name);
      require<ConfigError>(below != nullptr, "unknown command {}; see {} --help", printable(name),
                           named->path());
      named = below;
    }
    write_out(help(*named, std::min<std::size_t>(80, line_width(1))));
    return kDone;
  });
}

void add_completion(Command& program) {
  Command& command = program.add_command("completion", "Print a shell completion script");
  auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  command.action([shell] {
    write_out(completion_script(*shell));
    return kDone;
  });
}

void add_manual(Command& program) {
  Command& command = program.add_command("manual", "Print the man page");
  command.action([&program] {
    write_out(manual_page(program, fmt::format("thimble {}", version())));
    return kDone;
  });
}

}  // namespace thimble::cli
