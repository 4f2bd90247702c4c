// What people read about a command, made from the table of its options.
#pragma once

#include <string>

#include "cli/command_line.h"

namespace thimble::cli {

// Returns the answer to --help, in 80 columns.
std::string help(const Command& command);

// Returns "thimble train CONFIG [key=value ...] [options]".
std::string usage(const Command& command);

// Returns the page of the manual on the program and all its commands, for man.
std::string manual_page(const Command& program, const std::string& version);

}  // namespace thimble::cli
