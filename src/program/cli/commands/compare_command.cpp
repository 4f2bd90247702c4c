#include "program/cli/cli.h"
#include "program/cli/text/compare_table.h"
#include "program/cli/text/progress_meter.h"
#include "program/compare/page.h"

namespace thimble::cli {

namespace {

struct CompareArguments {
  std::vector<std::string> runs;
  std::string html;
  CompareOptions options;
  bool all = false;
  Output output;
};

int run(const CompareArguments& arguments) {
  const ProgressMeter meter(arguments.output.quiet);
  for (const RunDirectory run : arguments.runs)
    if (run.is_run()) require_no_outputs(run.data().files);
  const Comparison comparison = compare(arguments.runs, arguments.options);
  warn_of_changes(comparison.changes);
  show_remarks(comparison.remarks);
  if (!arguments.html.empty()) write_result(arguments.html, compare_page(comparison));
  if (arguments.output.prints_text())
    print_out("{}", compare_text(comparison, arguments.all, !is_terminal(1) || !has_utf8(), line_width(1)));
  arguments.output.write(to_json(comparison));
  return kDone;
}

}  // namespace

void add_compare(Command& program) {
  Command& command =
      program.add_command("compare", "Compare runs: results, curves, configs and attention heads");
  auto arguments = std::make_shared<CompareArguments>();
  command.add_option("RUN", arguments->runs, "Run directories, or directories of sweeps")
      .required()
      .value_name("", Value::run);
  command.add_flag("--all", arguments->all, "Also print the config keys whose values are the same");
  command
      .add_option("--sequences", arguments->options.sequences,
                  "Test sequences on which heads are compared; of a data file, a random sample of its lines")
      .between(1, 1000)
      .shows_default();
  command.add_option("--html", arguments->html, "Write the comparison as an HTML page").writable();
  arguments->output.add_to(command);
  command.action([arguments] { return run(*arguments); });
}

}  // namespace thimble::cli
