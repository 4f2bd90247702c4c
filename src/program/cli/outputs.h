// The files that a command writes because the user named them, such as --json FILE.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "program/cli/command_line.h"
#include "thimble/train/config.h"
#include "thimble/train/source.h"

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

// Throw ConfigError if an output is one of these inputs, or a file that the config was read from or has its data in, under
// whatever name. Call them before any work.
void require_no_outputs(const std::vector<std::string>& inputs);
void require_no_outputs(const std::vector<DataFile>& inputs);
void require_no_outputs(const OpenConfig&);

// Returns whether an output is standard output, which then has nothing else.
bool standard_output_is_taken();

// Writes an output as write_output() does, "-" to standard output.
void write_result(const std::string& path, std::string_view text);

}  // namespace thimble::cli
