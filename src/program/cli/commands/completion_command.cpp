#include "program/cli/cli.h"
#include "program/cli/completion.h"
#include "program/cli/help.h"
#include "train/files/version.h"

namespace thimble::cli {

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
