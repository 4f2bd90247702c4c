// Shell completion: the program itself finds what can complete a command line; the script of a shell asks it.
#pragma once

#include <string>
#include <vector>

#include "program/cli/command_line.h"

namespace thimble::cli {

// Returns a line that says what the last of the words is (files, directories, configs, runs, keys, the name of a value,
// or nothing), and a line for each word that may take its place, with a tab and a description if it has one. The shell
// leaves out those that do not match, and adds files. The first word is the program; "=" may be a word, as in bash.
std::string completions(const Command& program, const std::vector<std::string>& words);

// Returns the script of bash, zsh or fish.
std::string completion_script(const std::string& shell);

}  // namespace thimble::cli
