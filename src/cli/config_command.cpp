#include <sstream>

#include "cli/cli.h"
#include "thimble/core/json.h"
#include "thimble/core/width.h"
#include "thimble/train/cost.h"

namespace thimble::cli {

namespace {

// The YAML in lines of at most `width` columns: where a value and its comment have no room side by side, the
// comment stands above.
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

// Lines that each start with `prefix`.
void print_cost(const Config& config, std::string_view prefix) {
  const Flops flops = step_flops(config);
  const MemoryEstimate memory = estimate_memory(Job::training, config);
  std::string text = fmt::format("{:<16} {:>10.0f}\n", "parameters", parameter_count(config));
  text += fmt::format("{:<16} {:>10.4g} GFLOP, of matrix products\n", "training step", 1e-9 * flops.total());
  const std::pair<const char*, double> parts[] = {{"projections", flops.projections},
                                                  {"attention", flops.attention},
                                                  {"feed-forward", flops.feed_forward},
                                                  {"output", flops.output},
                                                  {"recurrent", flops.recurrent}};
  for (const auto& [name, part] : parts)
    if (part > 0) text += fmt::format("  {:<14} {:>10.4g}\n", name, 1e-9 * part);
  text += fmt::format("{:<16} {:>10}\n{}", "memory, about", format_bytes(memory.total()), describe(memory));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) print_out("{}{}\n", prefix, line);
}

}  // namespace

void add_config(Command& program) {
  Command& command = program.add_command("config", "Look at configs");

  Command& show =
      command.add_command("show", "Print every value of a config with where it comes from, and the cost");
  auto arguments = std::make_shared<ConfigArguments>();
  auto output = std::make_shared<Output>();
  arguments->add_to(show);
  output->add_to(show);
  show.action([arguments, output] {
    const ResolvedConfig resolved = resolve_config(arguments->file, arguments->overrides);
    if (output->talks()) {
      print_out("{}", narrowed(to_yaml(resolved), line_width(1)));
      print_cost(resolved.config, "# ");
    }
    output->write(to_json(resolved.config));
    return kDone;
  });

  Command& cost = command.add_command("cost", "Estimate what training takes");
  arguments->add_to(cost);
  output->add_to(cost);
  cost.action([arguments, output] {
    const Config config = arguments->load();
    if (output->talks()) print_cost(config, "");
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
