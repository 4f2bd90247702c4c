#include <algorithm>

#include "program/cli/cli.h"
#include "program/cli/text/progress_meter.h"
#include "program/cli/text/text_table.h"
#include "thimble/engine/error.h"
#include "thimble/train/train.h"
#include "train/step/cost.h"
#include "train/step/gradcheck_json.h"

namespace thimble::cli {

namespace {

struct GradcheckArguments {
  ConfigArguments config;
  Output output;
  std::string op;
};

OpenConfig fitting(OpenConfig config) {
  require_fit(model_check_memory(config));
  return config;
}

void print(const std::vector<GradcheckResult>& results, bool of_model) {
  const auto label = [](std::string_view verdict, std::string_view name) {
    return fmt::format("{:<9} {}", verdict, name);
  };
  TextTable table(label("", of_model ? "parameter" : "op (case) input"), {{.title = "worst at", .rank = 2},
                                                                          {.title = "analytic", .rank = 2},
                                                                          {.title = "numeric", .rank = 1},
                                                                          {.title = "+-"},
                                                                          {.title = "error", .rank = 2}});
  double worst = 0;
  for (const GradcheckResult& r : results) {
    const std::string name = of_model ? r.input : r.op + " " + r.input;
    table.add(label(to_string(r.verdict), name),
              {fmt::to_string(r.index), fmt::format("{:.3e}", r.analytic), fmt::format("{:.3e}", r.numeric),
               fmt::format("{:.0e}", r.error), fmt::format("{:.0e}", r.worst_error)});
    if (!r.reason.empty()) table.add_text(fmt::format("          {}: {}", name, r.reason));
    worst = std::max(worst, r.worst_error);
  }
  print_out("{}", table.text(line_width(1)));
  const auto count = [&](GradcheckVerdict v) {
    return std::ranges::count(results, v, &GradcheckResult::verdict);
  };
  print_out("{} gradients checked in double, {} wrong, {} undecided, worst relative error {:.1e}\n",
            results.size(), count(GradcheckVerdict::wrong), count(GradcheckVerdict::undecided), worst);
}

int run(const GradcheckArguments& arguments) {
  const ProgressMeter meter(arguments.output.quiet);
  const bool of_model = !arguments.config.file.empty();
  require<ConfigError>(!of_model || arguments.op.empty(), "gradcheck: give a config or --op, not both");
  const auto results = of_model ? check_model(fitting(arguments.config.load())) : check_ops(arguments.op);
  if (arguments.output.prints_text()) print(results, of_model);
  arguments.output.write({{"passed", passed(results)}, {"checks", to_json(results)}});
  return passed(results) ? kDone : kCheckFailed;
}

}  // namespace

void add_gradcheck(Command& program) {
  Command& command =
      program.add_command("gradcheck", "Check the gradients of all ops, or of a config's model");
  auto arguments = std::make_shared<GradcheckArguments>();
  arguments->config.add_to(command, false);
  command.add_option("--op", arguments->op, "Check only this op").value_name("NAME");
  arguments->output.add_to(command);
  command.action([arguments] { return run(*arguments); });
}

}  // namespace thimble::cli
