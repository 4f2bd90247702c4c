// A terminal in place of standard error.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace thimble {

class Terminal {
 public:
  explicit Terminal(unsigned short columns) : main_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (main_ < 0 || ::grantpt(main_) != 0 || ::unlockpt(main_) != 0) throw std::runtime_error("no terminal");
    const int child = ::open(::ptsname(main_), O_RDWR | O_NOCTTY);
    termios settings{};
    ::tcgetattr(child, &settings);
    ::cfmakeraw(&settings);
    ::tcsetattr(child, TCSANOW, &settings);
    resize(columns);
    ::dup2(child, STDERR_FILENO);
    ::close(child);
  }
  ~Terminal() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(main_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void resize(unsigned short columns) {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(main_, TIOCSWINSZ, &size);
  }

  // Returns the text written since the last call. Text arrives late but in order, so this writes a mark and
  // reads up to it.
  std::string text() {
    std::string out;
    char piece = 0;
    if (::write(STDERR_FILENO, &kMark, 1) != 1) throw std::runtime_error("no terminal");
    while (::read(main_, &piece, 1) == 1 && piece != kMark) out += piece;
    return out;
  }

 private:
  static constexpr char kMark = '\0';
  const int main_, before_ = ::dup(STDERR_FILENO);
};

}  // namespace thimble
