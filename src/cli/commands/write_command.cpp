#include <fmt/ranges.h>

#include <cmath>

#include "cli/text/inspect.h"
#include "cli/text/progress_meter.h"
#include "thimble/core/json.h"
#include "thimble/inspect/trace/forward_trace.h"

namespace thimble::cli {

namespace {

struct WriteArguments {
  Source source;
  Output output;
  std::string input;
  std::int64_t beams = 1;
};

void run(const WriteArguments& arguments) {
  const ProgressMeter meter(arguments.output.quiet);
  arguments.source.require_one_text(arguments.input);
  const ModelSource source = arguments.source.open();
  auto json = Json::array();
  for (const auto& [tokens, log_probability] : write_answers(source, arguments.input, arguments.beams)) {
    json.push_back({{"tokens", tokens}, {"log_probability", log_probability}});
    if (arguments.output.talks())
      print_out("{:.3f}  {}\n", std::exp(log_probability), fmt::join(tokens, " "));
  }
  if (arguments.output.talks()) warn_of_unread(source, arguments.input);
  arguments.output.write({{"input", arguments.input}, {"answers", json}});
}

}  // namespace

void add_write(Command& program) {
  Command& command =
      program.add_command("write", "Let an encoder-decoder answer, with how likely it finds that");
  auto arguments = std::make_shared<WriteArguments>();
  arguments->source.add_to(command);
  command.add_option("--input", arguments->input, "What it reads, tokens with spaces between them")
      .required()
      .value_name("TEXT");
  command
      .add_option("--beams", arguments->beams, "Hypotheses kept side by side, and answers shown; 1: greedy")
      .between(1, 1000)
      .shows_default()
      .value_name("N");
  arguments->output.add_to(command);
  command.action([arguments] {
    run(*arguments);
    return kDone;
  });
}

}  // namespace thimble::cli
