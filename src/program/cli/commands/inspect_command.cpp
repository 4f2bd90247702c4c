#include <algorithm>

#include "inspect/effects/head_names.h"
#include "program/cli/cli.h"
#include "program/cli/text/inspect.h"
#include "program/cli/text/progress_meter.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/html.h"
#include "thimble/inspect/inspect.h"
#include "thimble/train/run.h"
#include "train/files/text/text.h"
#include "train/step/cost.h"

namespace thimble::cli {

namespace {

// The arguments of inspect, trace, patch and ablate.
struct InspectArguments {
  ModelArguments model;
  Output output;
  HeadChoice heads;
  InspectOptions options;
  std::string smallest_effect = fmt::format("{}", kSmallestEffect);
  std::string html;
  std::optional<std::int64_t> clean, corrupted;
  std::optional<std::string> clean_text, corrupted_text, corruption;
  std::string pairs = std::to_string(kUsualPairs);
  bool edges = false, details = false;

  // Opens the model, and completes the options.
  ModelSource open();
  // Returns the report, and prints what is left out of it.
  InspectReport report(const ModelSource& opened) const;
};

ModelSource InspectArguments::open() {
  const std::optional<double> share = parse_number<double>(smallest_effect);
  require<ConfigError>(share && *share > 0 && *share < 1,
                       "--smallest-effect {}: must be a number above 0 and below 1",
                       printable(smallest_effect));
  options.smallest_effect = *share;
  options.page = !html.empty();
  ModelSource opened = model.open();
  heads.choose(attention_layers(opened.config.model));
  return opened;
}

InspectReport InspectArguments::report(const ModelSource& opened) const {
  const std::int64_t most = options.hypotheses.empty()
                                ? std::min(options.sequences, split_sizes(opened.config).test)
                                : options.sequences;
  require_attention_fits(opened.config, std::min(options.examples, most));
  InspectReport report = inspect(opened, options);
  show_remarks(report.timeline.remarks);
  return report;
}

int run_inspect(InspectArguments& arguments) {
  const ModelSource model = arguments.open();
  arguments.options.json = !arguments.output.json.empty();
  const InspectReport report = arguments.report(model);
  if (!arguments.html.empty()) write_result(arguments.html, html_page(report));
  if (arguments.output.prints_text()) print_report(report, arguments.heads, arguments.details);
  if (arguments.options.json) arguments.output.write(to_json(report));
  return kDone;
}

int run_trace(InspectArguments& arguments) {
  const std::string text = arguments.model.take_subject("TEXT");
  arguments.model.require_one_text(text, "thimble trace RUN");
  const ModelSource model = arguments.open();
  if (!arguments.html.empty()) {
    const ForwardTrace own = trace_input(model, text);
    write_result(arguments.html, html_page(arguments.report(model), &own));
  }
  show_input(model, text, arguments.heads, arguments.output);
  return kDone;
}

// Returns the pairs that the options choose. Throws ConfigError when they name several.
PairChoice choose_pairs(const InspectArguments& arguments) {
  const bool one = arguments.clean || arguments.clean_text;
  require<ConfigError>(!one || arguments.pairs == std::to_string(kUsualPairs),
                       "--pairs {}: {} are one pair; leave them or --pairs out", printable(arguments.pairs),
                       arguments.clean ? "--clean and --corrupted" : "--clean-text and --corrupted-text");
  require<ConfigError>(!arguments.clean || !arguments.clean_text,
                       "--clean-text: --clean and --corrupted are a pair already; leave out one of the two");
  const bool is_cut = std::ranges::any_of(arguments.model.overrides, [](const std::string& argument) {
    return argument.find('=') == argument.npos;
  });
  require<ConfigError>(
      !arguments.clean_text || !is_cut,
      "--clean-text {}: the tokens of a text are one argument; quote them: --clean-text \"a b c\" --corrupted-text \"a b d\"",
      printable(arguments.clean_text.value_or("")));
  PairChoice choice;
  if (arguments.corruption) check_corruption(choice.corruption = *arguments.corruption);
  if (arguments.clean_text) {
    choice.texts = {{*arguments.clean_text, *arguments.corrupted_text}};
  } else if (const auto number = parse_number<std::int64_t>(arguments.pairs)) {
    require<ConfigError>(
        *number >= 2 && *number <= 1'000'000,
        "--pairs {}: must be an integer from 2 to 1000000, of test sequences, or a file of your own pairs",
        *number);
    choice.pairs = *number;
  } else {
    choice.texts = read_text_pairs(arguments.pairs);
  }
  require<ConfigError>(
      !arguments.corruption || (!arguments.clean && choice.texts.empty()),
      "--corruption {}: makes corrupted inputs of test sequences, and a pair that is given has its own; leave it or the pair out",
      printable(arguments.corruption.value_or("")));
  return choice;
}

int run_patch(InspectArguments& arguments) {
  require<ConfigError>(!arguments.edges || (!arguments.clean && !arguments.heads.some()),
                       "--edges measures every edge; leave out --clean, --corrupted and --heads");
  const PairChoice choice = choose_pairs(arguments);
  const std::vector<std::string>& pair = arguments.model.overrides;
  if (pair.size() == 2 && parse_number<std::int64_t>(pair[0]) && parse_number<std::int64_t>(pair[1]))
    throw ConfigError(fmt::format(
        "{0} {1}: a pair is given by options; for these test sequences: --clean {0} --corrupted {1}", pair[0],
        pair[1]));
  const ModelSource model = arguments.open();
  const auto patch_heads = [&] {
    return arguments.clean ? patch(model, *arguments.clean, *arguments.corrupted)
                           : patch_pairs(model, choice);
  };
  const auto write_page = [&](const Json& results) {
    write_result(arguments.html, html_page(arguments.report(model), nullptr, results));
  };
  if (arguments.edges) {
    const EdgesReport report = patch_edges(model, choice);
    if (!arguments.html.empty())
      write_page({{"patching", to_json(patch_heads())}, {"edges", to_json(report)}});
    show_edges(report, arguments.output);
    return kDone;
  }
  const PatchingReport report = patch_heads();
  if (!arguments.html.empty()) write_page({{"patching", to_json(report)}});
  show_patching(report, model.config.model, arguments.heads, arguments.output);
  return kDone;
}

int run_ablate(InspectArguments& arguments) {
  const std::string names = arguments.model.take_subject("HEADS");
  const ModelSource model = arguments.open();
  const std::vector<HeadId> set = parse_heads(names, attention_layers(model.config.model));
  show_ablation(ablate(model, set, arguments.options.sequences), model.config, arguments.output);
  return kDone;
}

using Arguments = std::shared_ptr<InspectArguments>;

void add_action(Command& command, const Arguments& arguments, int (*run)(InspectArguments&)) {
  arguments->output.add_to(command);
  command.action([arguments, run] {
    const ProgressMeter meter(arguments->output.quiet);
    return run(*arguments);
  });
}

Option& add_sequences(Command& command, const Arguments& arguments, const std::string& help) {
  return command.add_option("--sequences", arguments->options.sequences, help)
      .between(1, 1'000'000'000)
      .shows_default();
}

const std::string kAnalyzed = "Test sequences to analyze; of a data file, a random sample of its lines";

// Adds the options of the report, which trace and patch make for --html alone.
void add_report(Command& command, const Arguments& arguments, bool is_page) {
  const auto add_html = [&]() -> Option& {
    command.group("Output");
    return command.add_option("--html", arguments->html, "Write the report as an HTML page").writable();
  };
  Option* html = is_page ? &add_html() : nullptr;
  Option& sequences =
      add_sequences(command, arguments, is_page ? "Test sequences that its report reads" : kAnalyzed);
  Option& examples = command
                         .add_option("--examples", arguments->options.examples,
                                     "How many of them the report contains in full")
                         .between(0, 1000)
                         .shows_default();
  Option& share =
      command
          .add_option(
              "--smallest-effect", arguments->smallest_effect,
              is_page ? "Smallest effect of interest in the report"
                      : "Smallest effect of interest, as a share of the way from chance to a perfect model")
          .shows_default()
          .value_name("SHARE");
  if (!is_page) add_html();
  for (Option* option : {&sequences, &examples, &share})
    if (is_page) option->needs(*html);
}

void add_trace(Command& program) {
  Command& command =
      program.add_command("trace", "Show the predictions and the attention of your own sequence");
  const auto arguments = std::make_shared<InspectArguments>();
  arguments->model.add_to(command, "TEXT", "The sequence, such as \"a b c\"");
  command.group("Analysis");
  arguments->heads.add_to(command);
  add_report(command, arguments, true);
  command.example("thimble trace runs/reverse \"3 1 4\" --heads 0.0");
  add_action(command, arguments, run_trace);
}

void add_patch(Command& program) {
  Command& command = program.add_command(
      "patch", "Activation patching: the share of the behavior that each head or edge carries");
  const auto arguments = std::make_shared<InspectArguments>();
  arguments->model.add_to(command);
  command.group("Analysis");
  command.add_option("--pairs", arguments->pairs, "Pairs of test sequences, or JSON Lines of your own")
      .shows_default()
      .value_name("N|FILE", Value::file);
  command
      .add_option("--corruption", arguments->corruption,
                  "Of test sequences: resample, target, order or \"token K\"")
      .value_name("NAME");
  Option& clean_text =
      command.add_option("--clean-text", arguments->clean_text, "One pair of your own: its clean text");
  Option& corrupted_text = command.add_option("--corrupted-text", arguments->corrupted_text,
                                              "One pair of your own: the other one");
  clean_text.needs(corrupted_text).value_name("T");
  corrupted_text.needs(clean_text).value_name("T");
  Option& clean =
      command.add_option("--clean", arguments->clean, "One pair: the number of its clean test sequence");
  Option& corrupted =
      command.add_option("--corrupted", arguments->corrupted, "One pair: that of its corrupted one");
  clean.needs(corrupted).value_name("N");
  corrupted.needs(clean).value_name("N");
  command.add_flag("--edges", arguments->edges, "Path patching: every edge, and the smallest circuit");
  arguments->heads.add_to(command);
  add_report(command, arguments, true);
  command.example("thimble patch runs/reverse --pairs 20");
  add_action(command, arguments, run_patch);
}

void add_ablate(Command& program) {
  Command& command = program.add_command("ablate", "Show what ablating a set of heads costs");
  const auto arguments = std::make_shared<InspectArguments>();
  arguments->model.add_to(command, "HEADS",
                          "Heads to ablate together, such as 0.1,1.0; cross.0.1 in an encoder-decoder");
  command.group("Analysis");
  add_sequences(command, arguments, kAnalyzed);
  command.example("thimble ablate runs/reverse 0.0");
  add_action(command, arguments, run_ablate);
}

}  // namespace

void add_inspect(Command& program) {
  Command& command =
      program.add_command("inspect", "Show what each head attends to and what ablating it costs");
  const auto arguments = std::make_shared<InspectArguments>();
  arguments->model.add_to(command);
  command.group("Analysis");
  arguments->heads.add_to(command);
  command
      .add_option(
          "--hypotheses", arguments->options.hypotheses,
          "Test for each head what it attends to: JSON Lines with \"attends\", in place of test sequences")
      .value_name("FILE", Value::file);
  add_report(command, arguments, false);
  command.add_flag("--details", arguments->details,
                   "Print the evidence of each label, orders of removal, logit lens and heads over time");
  command.add_former("--npy", "model.save(FILE) of Python's run.model(), or thimble serve RUN");
  command.add_former("--svg", "a button below each map of --html PAGE");
  command.example("thimble inspect runs/reverse --html report.html");
  add_action(command, arguments, run_inspect);
  add_trace(program);
  add_patch(program);
  add_ablate(program);
}

}  // namespace thimble::cli
