#include <csignal>
#include <cstdio>
#include <exception>

#include "cli/cli.h"
#include "thimble/core/error.h"

namespace {

constexpr const char* kFooter =
    "Exit status: 0 done; 1 a check did not hold, a target was missed or a run of a\n"
    "sweep failed; 2 the command, config or file was bad and nothing was written,\n"
    "or a file could not be written; 3 training stopped on a number that is not\n"
    "finite; 130 training was interrupted and is saved.\n";

int report(const char* message, int status) {
  fmt::print(stderr, "thimble: {}\n", message);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace thimble;
  CLI::App app{"thimble: tiny transformers, trained from a config, proven and inspected"};
  app.footer(kFooter);
  app.set_version_flag("--version", "thimble " THIMBLE_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(22);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is then an error like a full disk
  int status = cli::kDone;
  cli::add_train(app, status);
  cli::add_sweep(app, status);
  cli::add_eval(app, status);
  cli::add_inspect(app, status);
  cli::add_gradcheck(app, status);
  cli::add_bench(app, status);
  cli::add_tasks(app, status);
  cli::add_config(app, status);
  try {
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& e) {
    const auto unknown = app.remaining();
    if (app.get_subcommands().empty() && !unknown.empty()) {
      return report(fmt::format("there is no command {}; thimble --help lists them", unknown.front()).c_str(),
                    cli::kBadInput);
    }
    return app.exit(e) == 0 ? cli::kDone : cli::kBadInput;
  } catch (const NumericError& e) {
    return report(e.what(), cli::kNotFinite);
  } catch (const std::exception& e) {
    return report(e.what(), cli::kBadInput);
  }
}
