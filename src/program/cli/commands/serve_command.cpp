#include <unistd.h>

#include <memory>

#include "program/cli/cli.h"
#include "program/serve/serve.h"
#include "thimble/engine/error.h"

namespace thimble::cli {

void add_serve(Command& program) {
  Command& command = program.add_command("serve", "Answer requests for a model's arrays, see docs/serve.md");
  auto model = std::make_shared<ModelArguments>();
  model->add_to(command);
  command.action([model] {
    require<ConfigError>(
        !is_terminal(STDIN_FILENO),
        "serve: answers programs, not a terminal; docs/serve.md has one, and from Python it is Run(RUN).model()");
    const bool trained = model->checkpoint != "init";
    if (!trained) model->checkpoint.clear();
    serve(model->open(), trained, STDIN_FILENO, STDOUT_FILENO);
    return kDone;
  });
}

}  // namespace thimble::cli
