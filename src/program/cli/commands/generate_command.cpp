#include <fmt/ranges.h>

#include <cmath>

#include "program/cli/memory.h"
#include "program/cli/text/inspect.h"
#include "program/cli/text/progress_meter.h"
#include "thimble/inspect/forward_trace.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"

namespace thimble::cli {

namespace {

struct GenerateArguments {
  ModelArguments model;
  Output output;
  std::string input;
  std::int64_t beams = 1;
};

void run(const GenerateArguments& arguments) {
  const ProgressMeter meter(arguments.output.quiet);
  arguments.model.require_one_text(arguments.input);
  const ModelSource model = arguments.model.open();
  require_bound_fits(tracing_bound(model.config, 0, arguments.beams));
  auto json = Json::array();
  for (const GeneratedSequence& s : generate(model, arguments.input, arguments.beams)) {
    json.push_back({{"tokens", s.tokens},
                    {"text", s.text},
                    {"log_probability", s.log_probability},
                    {"finished", s.finished}});
    if (arguments.output.prints_text())
      print_out("{:.3f}  {}{}\n", std::exp(s.log_probability), s.text, s.finished ? "" : own_text(" …"));
  }
  if (arguments.output.prints_text()) warn_of_unseen(model, arguments.input);
  arguments.output.write({{"input", arguments.input}, {"hypotheses", json}});
}

}  // namespace

void add_generate(Command& program) {
  Command& command = program.add_command("generate", "Generate output with probabilities");
  auto arguments = std::make_shared<GenerateArguments>();
  arguments->model.add_to(command);
  command.add_option("--input", arguments->input, "Input tokens, separated by spaces")
      .required()
      .value_name("TEXT");
  command.add_option("--beams", arguments->beams, "Beam width and number of results (1 = greedy decoding)")
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
