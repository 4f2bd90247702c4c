
#include "cli/cli.h"
#include "cli/text/inspect.h"
#include "cli/text/progress_meter.h"
#include "thimble/core/error.h"
#include "thimble/core/file.h"
#include "thimble/core/json.h"
#include "thimble/inspect/report/html.h"
#include "thimble/inspect/trace/npy.h"

namespace thimble::cli {

namespace {

struct InspectArguments {
  ModelArguments model;
  Output output;
  InspectOptions options;
  std::optional<std::string> input;
  std::vector<std::int64_t> patch;
  std::string html, npy, svg;
  HeadOptions heads;

  // Returns the options, with the checkpoints of the run for a page.
  InspectOptions inspection() const {
    InspectOptions out = options;
    out.series = !html.empty();
    return out;
  }
};

// Returns the names of positions, their numbers.
std::vector<std::string> positions(std::int64_t count) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(std::to_string(i));
  return out;
}

void draw_head(const std::string& path, const HeadChoice& heads, const InspectReport& report) {
  const ModelConfig& model = report.config.model;
  const HeadId id = heads.only(model);
  const AttentionLayer layer = attention_layers(model)[static_cast<std::size_t>(id.layer)];
  write_svg(path, fmt::format("{}, mean of {} sequences", head_title(model, id), report.baseline.sequences),
            positions(report.queries(layer)), positions(report.keys(layer)),
            report.heads[static_cast<std::size_t>(id.layer * model.heads + id.head)].mean_weights,
            layer.causal);
}

// Writes the page with the user's own input as the first example.
void write_page(const ModelSource& model, const InspectArguments& arguments) {
  const ForwardTrace own = trace_input(model, *arguments.input);
  write_file(arguments.html, html_page(inspect(model, arguments.inspection()), &own));
}

int run(const InspectArguments& arguments) {
  const ProgressMeter meter(arguments.output.quiet);
  if (arguments.input) arguments.model.require_one_text(*arguments.input);
  const ModelSource model = arguments.model.open();
  const HeadChoice heads = arguments.heads.choose(model.config.model);
  if (!arguments.svg.empty()) heads.only(model.config.model);
  if (arguments.input) {
    const InspectOptions usual;
    require<ConfigError>(!arguments.html.empty() || (arguments.options.sequences == usual.sequences &&
                                                     arguments.options.examples == usual.examples),
                         "--sequences and --examples apply to the report: with --input, give --html too");
    if (!arguments.html.empty()) write_page(model, arguments);
    show_input(model, *arguments.input, heads, arguments.output, arguments.svg);
    return kDone;
  }
  if (!arguments.patch.empty()) {
    show_patching(patch(model, arguments.patch[0], arguments.patch[1]), model.config.model, heads,
                  arguments.output);
    return kDone;
  }
  const InspectReport report = inspect(model, arguments.inspection());
  if (!arguments.npy.empty()) write_attention(model, Split::test, arguments.options.sequences, arguments.npy);
  if (!arguments.html.empty()) write_file(arguments.html, html_page(report));
  if (!arguments.svg.empty()) draw_head(arguments.svg, heads, report);
  if (arguments.output.prints_text()) print_report(report, heads);
  arguments.output.write(to_json(report));
  return kDone;
}

}  // namespace

void add_inspect(Command& program) {
  Command& command =
      program.add_command("inspect", "Show what each head attends to and what ablating it costs");
  auto arguments = std::make_shared<InspectArguments>();
  arguments->model.add_to(command);
  Option& sequences = command
                          .add_option("--sequences", arguments->options.sequences,
                                      "Test sequences to analyze, from the first")
                          .between(1, 1'000'000'000)
                          .shows_default()
                          .value_name("N");
  Option& examples = command
                         .add_option("--examples", arguments->options.examples,
                                     "How many of them --html and --json contain in full")
                         .between(0, 1000)
                         .shows_default()
                         .value_name("N");
  Option& html = command.add_option("--html", arguments->html, "Write the report as an HTML page")
                     .writable()
                     .value_name("FILE", Value::file);
  Option& npy = command.add_option("--npy", arguments->npy, "Write the attention weights as NumPy arrays")
                    .writable(require_writable_attention)
                    .value_name("DIR", Value::directory);
  Option& svg =
      command
          .add_option("--svg", arguments->svg, "Draw one head, chosen with --layer or --attention and --head")
          .writable()
          .value_name("FILE", Value::file);
  Option& input =
      command
          .add_option(
              "--input", arguments->input,
              "Analyze your own sequence, such as \"a b c\"; with --html, also the first example on the page")
          .excludes(npy)
          .value_name("TEXT");
  command
      .add_option("--patch", arguments->patch,
                  "Activation patching: patch each head's output on test sequence DONOR into BASE")
      .pair()
      .excludes(sequences)
      .excludes(examples)
      .excludes(html)
      .excludes(npy)
      .excludes(svg)
      .excludes(input)
      .value_name("BASE DONOR");
  arguments->heads.add_to(command);
  arguments->output.add_to(command);
  command.action([arguments] { return run(*arguments); });
}

}  // namespace thimble::cli
