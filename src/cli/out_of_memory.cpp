// Destructors of JSON values need memory themselves, and where that is missing no exception can leave them:
// then the program ends here, with the message and the exit status that main gives to it elsewhere.
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "cli/cli.h"

namespace {

constexpr std::string_view kMessage = "thimble: out of memory\n";

[[noreturn]] void on_terminate() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
    ::_exit(thimble::cli::kBadInput);
  } catch (...) {
  }
  std::abort();
}

[[maybe_unused]] const std::terminate_handler before = std::set_terminate(on_terminate);

}  // namespace
