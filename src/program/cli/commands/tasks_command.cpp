#include <algorithm>

#include "program/cli/cli.h"
#include "program/cli/find_config.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "thimble/train/listing.h"
#include "train/data/task_page.h"
#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

struct TasksArguments {
  std::string name, config, split = "train";
  std::vector<std::string> overrides;
  std::int64_t examples = 3;
  Output output;
};

void list(const Output& output) {
  Json json = Json::object();
  for (const std::string_view name : task_names()) {
    const std::string_view summary = find_task(name).summary;
    json[std::string(name)] = summary;
    if (output.prints_text()) print_out("{:<19}{}\n", name, summary);
  }
  output.write(json);
}

bool is_task(const std::string& name) { return std::ranges::find(task_names(), name) != task_names().end(); }

void describe_task(const TasksArguments& arguments) {
  const std::vector<std::string> configs = config_names();
  require<ConfigError>(is_task(arguments.name) || std::ranges::find(configs, arguments.name) == configs.end(),
                       "{0}: is a config, not a task; print its sequences: thimble tasks --config {0}",
                       arguments.name);
  try {
    const OpenConfig config = task_config(arguments.name, arguments.overrides);
    if (config.source != nullptr) require_no_outputs(config.source->files());
    Json keys = to_json(config)["task"];
    keys.erase("name");
    const TaskPage page =
        task_page(source_of(config), keys, config.train.seed, arguments.examples, line_width(1));
    if (arguments.output.prints_text()) print_out("{}", page.text);
    arguments.output.write(page.json);
  } catch (const Error&) {
    // Some tasks require keys, which their definition names.
    if (is_task(arguments.name) && arguments.overrides.empty() && arguments.output.prints_text())
      print_out("{}\n", wrapped(find_task(arguments.name).definition, line_width(1)));
    flush_out();
    throw;
  }
}

void print_sequences(const TasksArguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.name.empty())
    overrides.insert(overrides.begin(), arguments.name);  // with --config, NAME is an override
  const OpenConfig config = open_config(arguments.config, overrides);
  require_no_outputs(config);
  const Dataset data = make_dataset(config);
  const Names& names = data.names();
  Json json = {{"task", config.task.name}, {"split", arguments.split}, {"seed", config.train.seed},
               {"tokens", names},          {"length", data.length()},  {"examples", Json::array()}};
  Split split = Split::train;
  for (const Split other : {Split::validation, Split::test, Split::varied})
    if (split_name(other) == arguments.split) split = other;
  require<ConfigError>(split != Split::varied || data.size(split) > 0,
                       "--split varied: task {} has none, as no key can be elsewhere", config.task.name);
  for (const Sequence& s : first_sequences(data, split, arguments.examples, config.train.batch)) {
    json["examples"].push_back(example_json(names, s, config.task));
    if (arguments.output.prints_text())
      print_out("{} {}\n{}\n", arguments.split, s.index, example_text(names, s, line_width(1)));
  }
  const std::int64_t size = data.size(split), shown = std::ssize(json["examples"]);
  if (arguments.output.prints_text() && shown < std::min(arguments.examples, size))
    print_out("{} of {} sit out of this epoch, as batches have train.batch={}\n", size - shown, size,
              config.train.batch);
  arguments.output.write(json);
}

}  // namespace

void add_tasks(Command& program) {
  Command& command = program.add_command("tasks", "List tasks, describe one, or print sequences");
  auto arguments = std::make_shared<TasksArguments>();
  Option& name = command.add_option("NAME", arguments->name, "Task to describe (default: list all)")
                     .suggests({task_names().begin(), task_names().end()});
  command.add_option("OVERRIDES", arguments->overrides, "Config overrides, such as task.length=20")
      .value_name("key=value", Value::key);
  Option& config = command.add_option("--config", arguments->config, "Print sequences of this config")
                       .value_name("FILE", Value::config);
  name.replaced_by(config);
  command.add_option("--split", arguments->split, "Split to print, train in training order")
      .one_of({"train", "validation", "test", "varied"})
      .needs(config)
      .shows_default()
      .value_name("NAME");
  command.add_option("--examples", arguments->examples, "Number of sequences")
      .between(0, 1'000'000'000)
      .shows_default();
  arguments->output.add_to(command);
  command.action([arguments] {
    if (!arguments->config.empty())
      print_sequences(*arguments);
    else if (!arguments->name.empty())
      describe_task(*arguments);
    else
      list(arguments->output);
    return kDone;
  });
}

}  // namespace thimble::cli
