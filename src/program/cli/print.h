// All output to the terminal. Text from outside (tokens, file names, keys, values) is escaped, so that it
// cannot send control sequences; what it says stays as it is, whatever the locale. Text of thimble has an ASCII
// form for locales without UTF-8.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "train/files/text/width.h"

namespace thimble::cli {

// Opens /dev/null in place of a closed standard input and / in place of closed outputs, so that no other file gets
// their descriptors; writing to them, also by names such as /dev/stdout, then fails. Must be called first.
void open_standard_streams();

// Returns the columns of the terminal of a descriptor, at least 40; 80 where it is not a terminal.
std::size_t line_width(int descriptor);

// Returns whether the locale has UTF-8: the first of LC_ALL, LC_CTYPE and LANG that is not empty.
bool has_utf8();

// Returns text of thimble's own as the locale can show it, "d loss" for "Δloss"; print_out and print_err do it to
// their formats, not to their arguments. A character that is not ASCII needs a row in its table.
std::string own_text(fmt::string_view text);

// Writes to standard output; on a terminal, lines that exceed its width are broken at spaces. Both functions
// throw FileError if writing fails, but for a terminal that is gone; a closed pipe ends the program as SIGPIPE
// does.
void write_out(std::string_view text);
void flush_out();

// Writes text to standard output as it is; on a terminal, what could control it is escaped, but for tabs.
void write_text(std::string_view text);

// Writes text with control sequences, such as colors, to standard output as it is.
void write_picture(std::string_view picture);

// Writes to standard error, with lines broken as above. Errors are ignored.
void write_err(std::string_view text) noexcept;

// Replaces the status line of the terminal by as much of the text as fits on one line. The next write_err
// replaces the status line.
void write_status(std::string_view text) noexcept;

// Writes text to standard error as it is, without allocating memory.
void write_plain(std::string_view text) noexcept;

// Makes all of the functions above do nothing, on ranks whose output is that of another rank, or do their work
// again.
void silence(bool silent = true);
bool is_silent();

template <class... Args>
void print_out(fmt::format_string<Args...> format, Args&&... arguments) {
  write_out(fmt::vformat(own_text(fmt::string_view(format)), fmt::make_format_args(arguments...)));
}

// Prints a paragraph, whose lines are broken at spaces, also where the output is no terminal.
template <class... Args>
void print_paragraph(fmt::format_string<Args...> format, Args&&... arguments) {
  write_out(wrapped(fmt::vformat(own_text(fmt::string_view(format)), fmt::make_format_args(arguments...)),
                    line_width(1)));
}

template <class... Args>
void print_err(fmt::format_string<Args...> format, Args&&... arguments) noexcept {
  try {
    write_err(fmt::vformat(own_text(fmt::string_view(format)), fmt::make_format_args(arguments...)));
  } catch (...) {  // no memory for the message
  }
}

}  // namespace thimble::cli
