#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "thimble/inspect/inspect.h"

namespace thimble::cli {

namespace {

struct Arguments {
  Source source;
  Output output;
  std::int64_t sequences = 1000;
};

std::string describe(const char* name, const HeadScore& score) {
  return fmt::format("{} {:.3f} (chance {:.3f})", name, score.value, score.chance);
}

int run(const Arguments& arguments) {
  const InspectReport report = inspect(arguments.source.open(), arguments.sequences);
  if (arguments.output.talks()) {
    fmt::print("Attention of query (row) on key (column), mean over {} test sequences;\n", report.sequences);
    fmt::print("{}.\n", wants_colour() ? "dark is 0, yellow is 1" : "blank is 0, @ is 1");
    for (const HeadReport& h : report.heads) {
      fmt::print("\nlayer {} head {}: {}", h.layer, h.head, describe("mirror", h.mirror));
      if (h.task_target.eligible > 0) fmt::print("; {}", describe("task target", h.task_target));
      fmt::print("\n");
      if (report.length <= 74) fmt::print("{}", heat_map(h.mean_weights, report.length, wants_colour()));
    }
  }
  arguments.output.write(to_json(report));
  return kDone;
}

}  // namespace

void add_inspect(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("inspect", "Show what each attention head looks at");
  auto arguments = std::make_shared<Arguments>();
  arguments->source.add_to(*command);
  command->add_option("--sequences", arguments->sequences, "Test sequences to look at")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str()
      ->type_name("N");
  arguments->output.add_to(*command);
  command->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace thimble::cli
