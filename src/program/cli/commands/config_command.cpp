#include <map>
#include <sstream>

#include "program/cli/cli.h"
#include "program/cli/text/text_table.h"
#include "program/compare/compare.h"
#include "thimble/inspect/inspect.h"
#include "thimble/train/json.h"
#include "train/files/text/format.h"
#include "train/files/text/width.h"
#include "train/step/cost.h"

namespace thimble::cli {

namespace {

// Returns the YAML in lines of at most `width` columns: a comment that does not fit beside its value is put
// on the line above.
std::string narrowed(const std::string& yaml, std::size_t width) {
  std::string out;
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line); out += line + '\n') {
    const std::size_t mark = line.rfind("  # ");
    if (display_width(line) <= width || mark == std::string::npos) continue;
    const std::string value = line.substr(0, line.find_last_not_of(' ', mark) + 1),
                      comment = line.substr(mark + 2);
    const std::string indent(value.find_first_not_of(' '), ' ');
    line = display_width(value) + 2 + display_width(comment) <= width ? value + "  " + comment
                                                                      : indent + comment + '\n' + value;
  }
  return out;
}

// Prints the cost in lines that start with `prefix`.
void print_cost(const OpenConfig& config, std::string_view prefix) {
  const StepCost step = step_cost(config);
  const MemoryEstimate memory = training_memory(config);
  std::string text = fmt::format("{:<16} {:>10.0f}\n", "parameters", step.parameters);
  text += fmt::format("{:<16} {:>10.4g} GFLOP in matrix products\n", "training step", 1e-9 * step.flops);
  std::map<std::string, double> flops;
  for (const OpCost& op : step.ops) flops[op.op] += op.flops.total();
  for (const auto& [op, count] : flops)
    if (count > 0) text += fmt::format("  {:<14} {:>10.4g}\n", op, 1e-9 * count);
  text += fmt::format("{:<16} {:>10}\n{}", "memory, about", format_bytes(memory.total()), describe(memory));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) print_out("{}{}\n", prefix, line);
}

void print_ops(const OpenConfig& config) {
  const StepCost step = step_cost(config);
  OpCost sum{.layer = "total", .op = "", .calls = 0, .bytes = 0, .flops = {}};
  TextTable table("layer", {{.title = " op", .is_left = true},
                            {.title = "calls"},
                            {.title = "memory", .min_width = 10},
                            {.title = "GFLOP", .min_width = 9}});
  const auto add = [&](const OpCost& op) {
    table.add(op.layer, {" " + op.op, std::to_string(op.calls), format_bytes(op.bytes),
                         fmt::format("{:.4g}", 1e-9 * op.flops.total())});
  };
  for (const OpCost& op : step.ops) {
    add(op);
    sum.calls += op.calls;
    sum.bytes += op.bytes;
    sum.flops.forward += op.flops.forward;
    sum.flops.backward += op.flops.backward;
  }
  add(sum);
  print_out("\n{}", table.text(line_width(1)));
  print_paragraph(
      "Calls and memory: one micro-batch of {} on one thread. GFLOP: one training step, a mean over the first {}, of what is computed: rows are padded to the longest of their micro-batch, and logits are those of labels.",
      counted(step.sequences, "sequence"), kCountedSteps);
}

}  // namespace

void add_config(Command& program) {
  Command& command = program.add_command("config", "Show a config, its cost, or the JSON Schema");

  Command& show = command.add_command("show", "Print every value with its origin, and the cost");
  auto arguments = std::make_shared<ConfigArguments>();
  auto output = std::make_shared<Output>();
  arguments->add_to(show);
  output->add_to(show);
  show.action([arguments, output] {
    const ResolvedConfig resolved = load_config(arguments->file, arguments->overrides);
    const OpenConfig config = open_data(resolved);
    require_no_outputs(config);
    if (output->prints_text()) {
      print_out("{}", narrowed(to_annotated_yaml(resolved), line_width(1)));
      print_cost(config, "# ");
    }
    output->write(to_json(config));
    return kDone;
  });

  Command& cost = command.add_command("cost", "Estimate the FLOPs and the memory of training");
  arguments->add_to(cost);
  output->add_to(cost);
  auto by_op = std::make_shared<bool>(false);
  cost.add_flag("--by-op", *by_op, "Break memory and FLOPs down by layer and op");
  cost.action([arguments, output, by_op] {
    const OpenConfig config = arguments->load();
    if (output->prints_text()) {
      print_cost(config, "");
      if (*by_op) print_ops(config);
    }
    output->write(cost_json(config));
    return kDone;
  });

  Command& schema = command.add_command("schema", "Print the JSON Schema of config files");
  schema.action([] {
    print_out("{}\n", json_text(config_schema(), 2));
    return kDone;
  });
}

}  // namespace thimble::cli
