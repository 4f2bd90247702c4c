
#include "program/cli/cli.h"
#include "program/cli/text/progress_meter.h"
#include "thimble/train/dataset.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"

namespace thimble::cli {

namespace {

struct EvalArguments {
  ModelArguments model;
  Output output;
  std::vector<std::string> splits;
  std::int64_t sequences = 0, stride = 0;
  std::string predictions;  // file of their table
};

// Returns the splits that are named, without names those of the two that are not empty.
std::vector<Split> splits_of(const std::vector<std::string>& names, const OpenConfig& config) {
  std::vector<Split> splits;
  for (const Split split : {Split::train, Split::validation, Split::test})
    if (std::ranges::find(names, split_name(split)) != names.end()) splits.push_back(split);
  if (!splits.empty()) return splits;
  splits = {Split::validation, Split::test};
  if (config.source == nullptr)
    std::erase_if(splits, [sizes = split_sizes(config)](Split split) { return sizes.size(split) == 0; });
  return splits;
}

int run(const EvalArguments& arguments) {
  const ProgressMeter meter(arguments.output.quiet);
  ModelArguments opened = arguments.model;
  if (arguments.stride > 0) opened.overrides.push_back(fmt::format("task.stride={}", arguments.stride));
  const ModelSource model = opened.open();
  Json json = Json::object();
  bool leak = false;
  std::string table = predictions_header();
  const std::vector<Split> splits = splits_of(arguments.splits, model.config);
  if (model.config.source != nullptr)
    for (const Split split : splits) model.config.source->require_rows(split);
  const Names names = token_names(model.config);
  std::optional<EvalResult> last;
  for (const Split split : splits) {
    const std::string name(split_name(split));
    std::vector<Prediction> predictions;
    const bool listed = !arguments.predictions.empty();
    const EvalResult report = evaluate(model, split, arguments.sequences, listed ? &predictions : nullptr);
    table += predictions_text(names, model.config.task, split, predictions);
    json[name] = to_json(report);
    if (arguments.output.prints_text()) print_out("{}\n", describe(name, report, model.config));
    leak |= warn_of_leak(name, report);
    if (!arguments.output.quiet) warn_of_chance(name, report);
    last = report;
  }
  if (last && arguments.output.prints_text()) print_out("{}", describe_reference(*last, model.config));
  if (!arguments.predictions.empty()) write_result(arguments.predictions, table);
  arguments.output.write(json);
  return leak ? kCheckFailed : kDone;
}

}  // namespace

void add_eval(Command& program) {
  Command& command =
      program.add_command("eval", "Evaluate a trained model on its validation and test splits");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->model.add_to(command);
  command.add_option("--split", arguments->splits, "Splits to evaluate (default: validation and test)")
      .one_of({"train", "validation", "test"})
      .value_name("NAME");
  command
      .add_option("--sequences", arguments->sequences,
                  "Sequences of each split (0 = all); of a data file, a random sample of its lines")
      .between(0, 1'000'000'000);
  command
      .add_option(
          "--stride", arguments->stride,
          "Of a text: begin windows N tokens after one another, so that predictions have more context")
      .between(1, 1'000'000);
  command
      .add_option("--predictions", arguments->predictions,
                  "Write a table of the answer to each sequence, separated by tabs")
      .writable();
  arguments->output.add_to(command);
  command.action([arguments] { return run(*arguments); });
}

}  // namespace thimble::cli
