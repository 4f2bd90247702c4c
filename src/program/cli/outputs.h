// The files that a command writes because the user named them, such as --json FILE.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "program/cli/command_line.h"

namespace thimble::cli {

// A path that the command line names, with its option and what that takes.
struct NamedPath {
  std::string option, path;
  Value kind;
};

// Declares the outputs of the command; "-" is standard output. `directories` are the runs that it reads, and the
// directories that it writes. Throws ConfigError if two outputs are the same file, and if one is a file that
// a run or sweep has, or that this command will write to its own.
void declare_outputs(const std::vector<NamedPath>& outputs, const std::vector<NamedPath>& directories);

// Throws ConfigError if an output is a file that the program has read since they were declared, under whatever
// name. Call it when the inputs are open, before any work.
void require_separate_outputs();

// Returns whether an output is standard output, which then has nothing else.
bool standard_output_is_taken();

// Writes an output as write_output() does, "-" to standard output.
void write_result(const std::string& path, std::string_view text);

}  // namespace thimble::cli
