// Ends the program with a message where std::bad_alloc cannot propagate: destructors of JSON values and
// directory iterators allocate memory, and an exception may not leave them.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "program/cli/cli.h"

namespace {

constexpr std::string_view kMessage = "thimble: out of memory\n";

// std::terminate does not always know the exception.
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
