#include <fmt/ranges.h>

#include <charconv>

#include "inspect/effects/head_names.h"
#include "inspect/trace/npy.h"
#include "program/cli/cli.h"
#include "program/cli/memory.h"
#include "program/cli/text/inspect.h"
#include "program/cli/text/progress_meter.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/html.h"
#include "thimble/inspect/inspect.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "train/files/text/text.h"

namespace thimble::cli {

namespace {

struct InspectArguments {
  ModelArguments model;
  Output output;
  InspectOptions options;
  std::optional<std::string> input;
  std::vector<std::string> patch;  // CLEAN CORRUPTED; one text without them
  std::int64_t pairs = kUsualPairs;
  bool edges = false;
  std::optional<std::string> ablate;
  std::string smallest_effect = fmt::format("{}", kSmallestEffect);
  std::string html, npy, svg;
  HeadChoice heads;

  // Returns the options, with what becomes of the report; of other analyses, it is part of the page only.
  InspectOptions inspection() const {
    InspectOptions out = options;
    out.page = !html.empty();
    out.json = !output.json.empty() && !input && !edges && patch.empty();
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
  const HeadId id = heads.only();
  const auto number = static_cast<std::size_t>(id.layer);
  const AttentionLayer layer = attention_layers(model)[number];
  const std::int64_t columns = report.keys(layer);
  const std::span<const std::int64_t> counts = report.mean_counts[number];
  const std::span<const double> means =
      report.heads[static_cast<std::size_t>(id.layer * model.heads + id.head)].mean_weights.from_start;
  const MeasuredPart part = measured_part(counts, columns);
  write_svg(path, fmt::format("{}, mean of {}", head_title(model, id), sequences_text(counts)),
            positions(part.rows), positions(part.columns), cropped(means, columns, part), layer.causal,
            cropped(counts, columns, part));
}

// Returns the report, and shows what is left out of it.
InspectReport inspected(const ModelSource& model, const InspectArguments& arguments) {
  InspectReport report = inspect(model, arguments.inspection());
  show_remarks(report.timeline.remarks);
  return report;
}

// Writes the page with the user's own input as the first example.
void write_page(const ModelSource& model, const InspectArguments& arguments) {
  const ForwardTrace own = trace_input(model, *arguments.input);
  write_result(arguments.html, html_page(inspected(model, arguments), &own));
}

// Returns the two sequence numbers of --patch, or none.
std::vector<std::int64_t> patched_pair(const std::vector<std::string>& texts) {
  std::vector<std::int64_t> numbers;
  if (texts.size() == 1 && texts[0].empty()) return numbers;
  require<ConfigError>(
      texts.size() == 2,
      "--patch {}: requires two sequences, or none for many pairs: RUN --patch [CLEAN CORRUPTED]",
      fmt::join(texts, " "));
  for (const std::string& text : texts) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), numbers.emplace_back());
    require<ConfigError>(error == std::errc() && end == text.data() + text.size(),
                         "--patch {}: must be an integer", text);
  }
  return numbers;
}

// Throws ConfigError for options without effect on patching.
void check_patching(const InspectArguments& arguments) {
  const InspectOptions usual;
  const char* mode = arguments.edges ? "--edges" : "--patch";
  require<ConfigError>(
      !arguments.html.empty() ||
          (arguments.options.sequences == usual.sequences && arguments.options.examples == usual.examples),
      "--sequences and --examples apply to the report: with {}, give --html too, or --pairs", mode);
  const bool one_pair = !arguments.edges && !patched_pair(arguments.patch).empty();
  require<ConfigError>(!one_pair || arguments.pairs == kUsualPairs,
                       "--pairs {}: --patch has one pair already; leave out its numbers or --pairs",
                       arguments.pairs);
  require<ConfigError>(!arguments.edges || !arguments.heads.some(),
                       "--heads does not apply to --edges, which measures every edge; leave it out");
}

int run_patching(const InspectArguments& arguments, const ModelSource& model, const HeadChoice& heads) {
  const auto write_page = [&](const char* name, const auto& report) {
    if (arguments.html.empty()) return;
    write_result(arguments.html, html_page(inspected(model, arguments), nullptr, {{name, to_json(report)}}));
  };
  if (arguments.edges) {
    const EdgesReport report = patch_edges(model, arguments.pairs);
    write_page("edges", report);
    show_edges(report, arguments.output);
    return kDone;
  }
  const std::vector<std::int64_t> pair = patched_pair(arguments.patch);
  const PatchingReport report =
      pair.empty() ? patch_pairs(model, arguments.pairs) : patch(model, pair[0], pair[1]);
  write_page("patching", report);
  show_patching(report, model.config.model, heads, arguments.output);
  return kDone;
}

double share(const std::string& text) {
  const std::optional<double> number = parse_number<double>(text);
  require<ConfigError>(number && *number > 0 && *number < 1,
                       "--smallest-effect {}: must be a number above 0 and below 1", printable(text));
  return *number;
}

// Returns the memory of the command: the analysis, or passes over single sequences alone.
MemoryEstimate bound_of(const InspectArguments& arguments, const Config& config) {
  if (arguments.input && arguments.html.empty()) return tracing_bound(config);
  constexpr std::int64_t kSteps = 20;  // of a series of checkpoints
  const bool keeps = !arguments.input && arguments.patch.empty() && !arguments.edges && !arguments.ablate;
  std::int64_t examples = keeps || !arguments.html.empty() ? arguments.options.examples : 0;
  if (!arguments.html.empty() && config.train.checkpoint_series) examples += kSteps * kSeriesExamples;
  std::int64_t sequences = arguments.options.sequences;
  if (arguments.edges || !arguments.patch.empty())
    sequences = std::max({sequences, arguments.pairs, kCandidates});
  const ReportOutput output = !arguments.output.json.empty() ? ReportOutput::json
                              : !arguments.html.empty()      ? ReportOutput::page
                                                             : ReportOutput::none;
  return inspection_bound(config, std::min(sequences, split_sizes(config.task, config.data).test), examples,
                          output);
}

int run(InspectArguments& arguments) {
  const ProgressMeter meter(arguments.output.quiet);
  arguments.options.smallest_effect = share(arguments.smallest_effect);
  const bool patches = arguments.edges || !arguments.patch.empty();
  if (patches) check_patching(arguments);
  require<ConfigError>(patches || arguments.pairs == kUsualPairs,
                       "--pairs {}: applies to --patch and --edges; give one of them", arguments.pairs);
  if (arguments.input) arguments.model.require_one_text(*arguments.input);
  const ModelSource model = arguments.model.open();
  HeadChoice heads = arguments.heads;
  heads.choose(attention_layers(model.config.model));
  require_bound_fits(bound_of(arguments, model.config));
  if (!arguments.svg.empty()) heads.only();
  if (arguments.input) {
    const InspectOptions usual;
    require<ConfigError>(!arguments.html.empty() || (arguments.options.sequences == usual.sequences &&
                                                     arguments.options.examples == usual.examples),
                         "--sequences and --examples apply to the report: with --input, give --html too");
    if (!arguments.html.empty()) write_page(model, arguments);
    show_input(model, *arguments.input, heads, arguments.output, arguments.svg);
    return kDone;
  }
  if (patches) return run_patching(arguments, model, heads);
  if (arguments.ablate) {
    const std::vector<HeadId> set = parse_heads(*arguments.ablate, attention_layers(model.config.model));
    show_ablation(ablate(model, set, arguments.options.sequences), model.config, arguments.output);
    return kDone;
  }
  const InspectReport report = inspected(model, arguments);
  if (!arguments.npy.empty()) write_attention(model, Split::test, arguments.options.sequences, arguments.npy);
  if (!arguments.html.empty()) write_result(arguments.html, html_page(report));
  if (!arguments.svg.empty()) draw_head(arguments.svg, heads, report);
  if (arguments.output.prints_text()) print_report(report, heads);
  if (!arguments.output.json.empty()) arguments.output.write(to_json(report));
  return kDone;
}

}  // namespace

void add_inspect(Command& program) {
  Command& command =
      program.add_command("inspect", "Show what each head attends to and what ablating it costs");
  auto arguments = std::make_shared<InspectArguments>();
  arguments->model.add_to(command);
  command
      .add_option("--sequences", arguments->options.sequences,
                  "Test sequences to analyze; of a data file, a random sample of its lines")
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
  Option& svg = command.add_option("--svg", arguments->svg, "Draw one head, chosen with --heads")
                    .writable()
                    .value_name("FILE", Value::file);
  Option& input =
      command
          .add_option(
              "--input", arguments->input,
              "Analyze your own sequence, such as \"a b c\"; with --html, also the first example on the page")
          .excludes(npy)
          .value_name("TEXT");
  Option& patch =
      command
          .add_option("--patch", arguments->patch,
                      "Activation patching: the share of the behavior that each head carries, over "
                      "many pairs or one pair of test sequences")
          .optional_pair()
          .excludes(npy)
          .excludes(svg)
          .excludes(input)
          .value_name("[CLEAN CORRUPTED]");
  Option& edges =
      command
          .add_flag("--edges", arguments->edges,
                    "Path patching: the effect of every edge between heads, and the smallest circuit of them")
          .excludes(patch)
          .excludes(npy)
          .excludes(svg)
          .excludes(input);
  command.add_option("--pairs", arguments->pairs, "Pairs of test sequences for --patch and --edges, at most")
      .between(2, 1'000'000)
      .shows_default()
      .value_name("N");
  command
      .add_option("--smallest-effect", arguments->smallest_effect,
                  "Smallest effect of interest, as a share of the way from chance to a perfect model")
      .shows_default()
      .value_name("SHARE");
  command
      .add_option("--ablate", arguments->ablate,
                  "Ablate these heads together, such as 0.1,1.0; cross.0.1 in an encoder-decoder")
      .excludes(examples)
      .excludes(html)
      .excludes(npy)
      .excludes(svg)
      .excludes(input)
      .excludes(patch)
      .excludes(edges)
      .value_name("HEADS");
  arguments->heads.add_to(command);
  arguments->output.add_to(command);
  command.action([arguments] { return run(*arguments); });
}

}  // namespace thimble::cli
