#include <algorithm>

#include "program/cli/cli.h"
#include "program/cli/memory.h"
#include "program/cli/text/progress_meter.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "thimble/train/train.h"
#include "train/step/gradcheck_json.h"

namespace thimble::cli {

namespace {

struct GradcheckArguments {
  ConfigArguments config;
  Output output;
  std::string op;
};

// Returns the end of a name that is too long for its column; names differ in their ends.
std::string fitted(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : "~" + text.substr(text.size() - width + 1);
}

Config fitting(Config config) {
  require_fit(model_check_memory(config));
  return config;
}

void print(const GradcheckResult& r, bool of_model) {
  constexpr std::size_t kName = 33;
  const std::string name = of_model ? r.input : r.op + " " + r.input;
  print_out("{:<9} {:<{}} {:>12} {:>10.3e} {:>10.3e} {:>7.0e} {:>7.0e}\n", to_string(r.verdict),
            fitted(name, kName), kName, r.index, r.analytic, r.numeric, r.error, r.worst_error);
  if (!r.reason.empty()) print_out("          {}: {}\n", name, r.reason);
}

void print(const std::vector<GradcheckResult>& results, bool of_model) {
  print_out("{:<9} {:<33} {:>12} {:>10} {:>10} {:>7} {:>7}\n", "", of_model ? "parameter" : "op (case) input",
            "worst at", "analytic", "numeric", "+-", "error");
  double worst = 0;
  for (const GradcheckResult& r : results) {
    print(r, of_model);
    worst = std::max(worst, r.worst_error);
  }
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
