// The files that a command writes because the user named them, such as --json FILE.
#pragma once

#include <string>
#include <vector>

namespace thimble::cli {

// A path that the command line names, and the option that it belongs to.
struct NamedPath {
  std::string option, path;
};

// Declares the outputs of the command. `directories` are runs and sweeps that it reads or writes. Throws
// ConfigError if two outputs are the same file, or if one has a name that thimble uses in a run or sweep
// directory.
void declare_outputs(const std::vector<NamedPath>& outputs, const std::vector<std::string>& directories);

// Throws ConfigError if an output is a file that the program has read, under whatever name. Call it when the
// inputs are open, before any work.
void require_separate_outputs();

}  // namespace thimble::cli
