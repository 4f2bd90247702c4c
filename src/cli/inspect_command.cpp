#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/heat_map.h"
#include "cli/inspect.h"
#include "thimble/inspect/inspect.h"
#include "thimble/inspect/npy.h"

namespace thimble::cli {

namespace {

struct Arguments {
  Source source;
  Output output;
  std::int64_t sequences = 1000;
  std::optional<std::string> input;
  std::string npy;
  HeadChoice heads;
};

std::string describe(const char* name, const HeadScore& score) {
  return fmt::format("{} {:.3f} (chance {:.3f})", name, score.value, score.chance);
}

void print(const InspectReport& report, const HeadChoice& heads) {
  fmt::print("Attention of query (row) on key (column), mean over {} test sequences;\n{}.\n",
             report.sequences, legend(wants_colour()));
  for (const HeadReport& h : report.heads) {
    if (!heads.has(h.layer, h.head)) continue;
    fmt::print("\nlayer {} head {}: {}", h.layer, h.head, describe("mirror", h.mirror));
    if (h.task_target.eligible > 0) fmt::print("; {}", describe("task target", h.task_target));
    fmt::print("\n");
    if (report.length <= 74) fmt::print("{}", heat_map(h.mean_weights, report.length, wants_colour()));
  }
}

int run(const Arguments& arguments) {
  const ModelSource source = arguments.source.open();
  arguments.heads.check(source.config.model);
  if (arguments.input) {
    show_input(source, *arguments.input, arguments.heads, arguments.output);
    return kDone;
  }
  const InspectReport report = inspect(source, arguments.sequences);
  if (!arguments.npy.empty()) write_attention(source, Split::test, arguments.sequences, arguments.npy);
  if (arguments.output.talks()) print(report, arguments.heads);
  arguments.output.write(to_json(report));
  return kDone;
}

}  // namespace

void add_inspect(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("inspect", "Show what each attention head looks at");
  auto arguments = std::make_shared<Arguments>();
  arguments->source.add_to(*command);
  CLI::Option* sequences =
      command->add_option("--sequences", arguments->sequences, "Test sequences to look at")
          ->check(CLI::Range(1, 1'000'000'000))
          ->capture_default_str()
          ->type_name("N");
  CLI::Option* npy =
      command->add_option("--npy", arguments->npy, "Write their attention there, as NumPy arrays")
          ->type_name("DIR");
  command->add_option("--input", arguments->input, "Show what the model makes of \"a b c\" instead")
      ->excludes(sequences)
      ->excludes(npy)
      ->type_name("TEXT");
  arguments->heads.add_to(*command);
  arguments->output.add_to(*command);
  command->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace thimble::cli
