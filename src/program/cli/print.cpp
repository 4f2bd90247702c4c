#include "program/cli/print.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "program/cli/out_of_memory.h"
#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/text/text.h"
#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

bool silent = false;
bool out_is_terminal = false;  // at the start

// Throws, unless the terminal of standard output is gone: nobody is there to read.
void fail_out() {
  const int error = errno;
  if (error == EIO && out_is_terminal) return std::clearerr(stdout);
  end_if_broken_pipe(error);
  throw FileError(fmt::format("standard output: cannot be written: {}", std::strerror(error)));
}

}  // namespace

void open_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) == -1)  // takes the lowest free number
      ::open(descriptor == STDIN_FILENO ? "/dev/null" : "/", O_RDONLY);
  out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  std::signal(SIGPIPE, SIG_IGN);  // training continues when the reader of its messages is gone
}

bool has_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string locale = value;
    std::ranges::transform(locale, locale.begin(), [](unsigned char c) { return std::tolower(c); });
    return locale.find("utf-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

std::string own_text(fmt::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kForms[] = {
      {"Δ", "d "}, {"–", "-"}, {"±", "+/-"}, {"µ", "u"}, {"…", "..."}};
  std::string out(text.data(), text.size());
  if (has_utf8()) return out;
  for (const auto& [character, form] : kForms)
    for (std::size_t at = 0; (at = out.find(character, at)) != out.npos; at += form.size())
      out.replace(at, character.size(), form);
  return out;
}

void silence(bool silent_from_now_on) { silent = silent_from_now_on; }

bool is_silent() { return silent; }

void write_picture(std::string_view picture) {
  if (silent) return;
  if (std::fwrite(picture.data(), 1, picture.size(), stdout) != picture.size()) fail_out();
}

std::size_t line_width(int descriptor) {
  constexpr std::size_t kMinWidth = 40, kUsual = 80;
  winsize size{};
  const bool known =
      ::isatty(descriptor) == 1 && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::max<std::size_t>(kMinWidth, size.ws_col) : kUsual;
}

namespace {

bool has_status = false;  // the cursor of standard error is in a status line

std::string printable_text(int descriptor, std::string_view text) {
  const std::string safe = escape_controls(text);
  return ::isatty(descriptor) == 1 ? reflowed(safe, line_width(descriptor)) : safe;
}

}  // namespace

void write_out(std::string_view text) { write_picture(printable_text(STDOUT_FILENO, text)); }

void write_text(std::string_view text) {
  if (::isatty(STDOUT_FILENO) == 1)
    write_picture(escape_controls(text, "\n\t"));
  else
    write_picture(text);
}

void flush_out() {
  if (std::fflush(stdout) != 0) fail_out();
}

void write_plain(std::string_view text) noexcept {
  if (silent) return;
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_err(std::string_view text) noexcept {
  try {
    write_plain((has_status ? "\r\033[K" : "") + printable_text(STDERR_FILENO, text));
    has_status = false;
  } catch (...) {
    write_plain(kOutOfMemory);
  }
}

void write_status(std::string_view text) noexcept {
  try {
    write_plain("\r\033[K" + truncated(escape_controls(text), line_width(STDERR_FILENO) - 1));
    has_status = true;
  } catch (...) {  // no memory for the message
  }
}

}  // namespace thimble::cli
