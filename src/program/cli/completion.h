// Shell completion scripts, generated from the table of commands and options.
#pragma once

#include <string>

#include "program/cli/command_line.h"

namespace thimble::cli {

std::string bash_completion(const Command& program);
std::string zsh_completion(const Command& program);
std::string fish_completion(const Command& program);

}  // namespace thimble::cli
