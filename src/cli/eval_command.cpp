#include <nlohmann/json.hpp>

#include "cli/cli.h"

namespace thimble::cli {

namespace {

struct Arguments {
  Source source;
  Output output;
};

int run(const Arguments& arguments) {
  const ModelSource source = arguments.source.open();
  nlohmann::ordered_json json;
  for (const Split split : {Split::validation, Split::test}) {
    const DataConfig& data = source.config.data;
    if ((split == Split::test ? data.test : data.validation) == 0) continue;
    const SplitReport report = evaluate(source, split);
    const std::string name(split_name(split));
    json[name] = to_json(report);
    if (arguments.output.talks()) fmt::print("{}\n", describe(name, report));
  }
  arguments.output.write(json);
  return kDone;
}

}  // namespace

void add_eval(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("eval", "Measure a trained model on fresh sequences");
  auto arguments = std::make_shared<Arguments>();
  arguments->source.add_to(*command);
  arguments->output.add_to(*command);
  command->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace thimble::cli
