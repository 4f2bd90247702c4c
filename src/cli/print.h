// The only ways to the terminal. Whatever text comes from outside (tokens, names of files, keys, values) is
// printed escaped, so that none of it can steer the terminal.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace thimble::cli {

// Opens /dev/null in place of standard streams that are closed, so that no file of the program takes their
// numbers. Writing there then fails. To be called before anything else.
void open_standard_streams();

// Standard output. Both throw FileError if it cannot be written; a reader that has gone away ends the program
// as SIGPIPE does.
void write_out(std::string_view text);
void flush_out();

// A picture made by this program, with its colors: nothing is escaped.
void write_picture(std::string_view picture);

// Standard error. A message that cannot be written is lost, and nothing else happens.
void write_err(std::string_view text) noexcept;

// On a terminal: writes over the line of standard error that the cursor is in.
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
