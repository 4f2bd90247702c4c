// Help texts and the man page, of what CLI11 has of commands and options.
#pragma once

#include <string>

#include "program/cli/command_line.h"

namespace thimble::cli {

// Returns the text of --help in lines of at most `width` columns, at least 40.
std::string help(const Command& command, std::size_t width = 80);

// Returns "thimble train CONFIG [key=value ...] [options]".
std::string usage(const Command& command);

// Returns the man page of the program and all its commands.
std::string manual_page(const Command& program, const std::string& version);

}  // namespace thimble::cli
