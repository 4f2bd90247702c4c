// Destructors of JSON values and iterators of directories need memory themselves, and where that is missing
// no exception can leave them: then the program ends here, with a message and the exit status that main
// gives.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "cli/cli.h"

namespace {

constexpr std::string_view kMessage = "thimble: out of memory\n";

// The exception itself is not always known when the program ends because of it.
std::atomic<bool> has_failed = false;

void on_failed_allocation() {
  has_failed = true;
  throw std::bad_alloc();
}

[[noreturn]] void on_terminate() {
  if (!has_failed) std::abort();
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(thimble::cli::kBadInput);
}

[[maybe_unused]] const std::terminate_handler kTerminateBefore = std::set_terminate(on_terminate);
[[maybe_unused]] const std::new_handler kNewHandlerBefore = std::set_new_handler(on_failed_allocation);

}  // namespace
