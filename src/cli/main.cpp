#include <csignal>
#include <cstdio>
#include <exception>
#include <sstream>

#include "cli/cli.h"
#include "thimble/core/error.h"
#include "thimble/data/listing.h"

namespace {

constexpr const char* kFooter =
    "Exit status: 0 done; 1 a check did not hold, a target was missed or a run of a\n"
    "sweep failed; 2 the command, config or file was bad and nothing was written,\n"
    "or a file could not be written; 3 training stopped on a number that is not\n"
    "finite; 130 training was interrupted and is saved.\n";

// In 80 columns for people; programs that read it find each problem on one line.
int report(std::string_view message, int status) {
  std::istringstream lines(fmt::format("thimble: {}", message));
  for (std::string line; std::getline(lines, line);) {
    const bool too_long = thimble::cli::is_terminal(2) && line.size() > 80;
    fmt::print(stderr, "{}", too_long ? thimble::wrap(line, 80) : line + "\n");
  }
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
  cli::add_reproduce(app, status);
  cli::add_eval(app, status);
  cli::add_inspect(app, status);
  cli::add_write(app, status);
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
      return report(fmt::format("there is no command {}; thimble --help lists them", unknown.front()),
                    cli::kBadInput);
    }
    if (e.get_exit_code() == 0) return app.exit(e);
    return report(fmt::format("{}; --help says what there is", e.what()), cli::kBadInput);
  } catch (const NumericError& e) {
    return report(e.what(), cli::kNotFinite);
  } catch (const std::exception& e) {
    return report(e.what(), cli::kBadInput);
  }
}
