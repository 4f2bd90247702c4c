#include "cli/print.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "thimble/core/error.h"
#include "thimble/core/text.h"

namespace thimble::cli {

namespace {

[[noreturn]] void fail_out() {
  const int error = errno;
  if (error == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw FileError(fmt::format("standard output: cannot be written: {}", std::strerror(error)));
}

}  // namespace

void open_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) == -1) ::open("/dev/null", O_RDONLY);  // takes the lowest free number
  std::signal(SIGPIPE, SIG_IGN);  // training outlives the reader of its messages
}

void write_picture(std::string_view picture) {
  if (std::fwrite(picture.data(), 1, picture.size(), stdout) != picture.size()) fail_out();
}

void write_out(std::string_view text) { write_picture(escape_controls(text)); }

void flush_out() {
  if (std::fflush(stdout) != 0) fail_out();
}

void write_plain(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_err(std::string_view text) noexcept {
  try {
    write_plain(escape_controls(text));
  } catch (...) {  // no memory for the message
  }
}

void write_status(std::string_view text) noexcept {
  try {
    write_plain("\r\033[K" + escape_controls(text));
  } catch (...) {  // no memory for the message
  }
}

}  // namespace thimble::cli
