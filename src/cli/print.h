// The only ways to the terminal. Whatever text comes from outside (tokens, names of files, keys, values) is
// printed escaped, so that none of it can steer the terminal.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace thimble::cli {

// Opens /dev/null in place of standard streams that are closed, so that no file of the program takes their
// numbers. Writing there then fails. To be called before anything else.
void open_standard_streams();

// Columns of the terminal that the descriptor is open on, at least 40; 80 where it is none.
std::size_t line_width(int descriptor);

// Standard output; on a terminal, lines that are wider than it are broken at spaces. Both throw FileError if
// it cannot be written; a reader that has gone away ends the program as SIGPIPE does.
void write_out(std::string_view text);
void flush_out();

// Text made by this program, such as pictures with their colors: nothing is escaped or broken.
void write_picture(std::string_view picture);

// Standard error, with lines broken as above. A message that cannot be written is lost, and nothing else
// happens.
void write_err(std::string_view text) noexcept;

// On a terminal: shows as much of the text as one line of it has room for, in place of what was shown before.
// What write_err writes next takes its place too.
void write_status(std::string_view text) noexcept;

// For when there is no memory: the text is written as it is.
void write_plain(std::string_view text) noexcept;

template <class... Args>
void print_out(fmt::format_string<Args...> format, Args&&... arguments) {
  write_out(fmt::format(format, std::forward<Args>(arguments)...));
}

template <class... Args>
void print_err(fmt::format_string<Args...> format, Args&&... arguments) noexcept {
  try {
    write_err(fmt::format(format, std::forward<Args>(arguments)...));
  } catch (...) {  // no memory for the message
  }
}

}  // namespace thimble::cli
