#include <csignal>
#include <exception>
#include <new>

#include "engine/kernels/products/backend.h"
#include "program/cli/cli.h"
#include "program/cli/cluster.h"
#include "program/cli/out_of_memory.h"
#include "thimble/engine/error.h"
#include "train/files/memory.h"
#include "train/files/process.h"
#include "train/files/version.h"

namespace {

constexpr const char* kFooter =
    "Exit status: 0 success; 1 a check failed, a target was missed, or a run of a sweep failed; 2 bad "
    "command, config or file (nothing was written), or a file could not be written; 3 training stopped on a "
    "non-finite number; 130 interrupted, progress saved.\n";

// Returns the exit status of the exception being handled, and reports it unless another rank does.
int report(std::string_view command) noexcept {
  using namespace thimble;
  const auto end = [](int status, const char* message) {
    const Ending ending = cluster().end({status, message != nullptr});
    if (!ending.has_message) return ending.status;
    cli::silence(false);
    try {
      cli::write_err(fmt::format("thimble: {}\n", message));
    } catch (...) {  // no memory for the message
      cli::write_plain(cli::kOutOfMemory);
    }
    return ending.status;
  };
  try {
    throw;
  } catch (const PeerError& e) {
    return end(e.status(), nullptr);
  } catch (const NumericError& e) {
    return end(cli::kNotFinite, e.what());
  } catch (const std::bad_alloc&) {
    return end(cli::kBadInput, cli::out_of_memory(command).c_str());
  } catch (const std::exception& e) {
    return end(cli::kBadInput, e.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace thimble;
  cli::open_standard_streams();
  return_large_blocks();
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is then an error, as on a full disk
  try {
    // Throws for a name in the environment that is not known. OpenBLAS waits for memory that it does not get.
    if (!uses_openblas()) limit_data(launcher_rank().local);
    cli::Command program("thimble",
                         "Train tiny transformers, check their gradients, inspect their attention heads",
                         fmt::format("thimble {}", version()));
    program.ending(kFooter);
    cli::add_train(program);
    cli::add_sweep(program);
    cli::add_reproduce(program);
    cli::add_eval(program);
    cli::add_inspect(program);
    cli::add_curves(program);
    cli::add_compare(program);
    cli::add_generate(program);
    cli::add_serve(program);
    cli::add_gradcheck(program);
    cli::add_bench(program);
    cli::add_tasks(program);
    cli::add_config(program);
    cli::add_help(program);
    cli::add_completion(program);
    cli::add_manual(program);
    const int status = program.run(argc, argv);
    cli::flush_out();
    return cluster().end({.status = status}).status;
  } catch (...) {
    return report(argc > 1 ? argv[1] : "");
  }
}
