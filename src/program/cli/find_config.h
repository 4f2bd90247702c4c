// Bundled configs, which commands accept by name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace thimble::cli {

// Returns the folders to search, in order: configs in the current directory, in the source tree that the
// program was built in, and share/thimble/configs of an installed program.
std::vector<std::filesystem::path> config_folders();

// Returns the path itself if it exists, otherwise the bundled config of that name, such as reverse or
// bench/base. Throws ConfigError with all searched paths if there is none; a missing path with an extension
// is returned, so that its reader reports it.
std::string find_config(const std::string& name);

// Throws ConfigError for a file that is no config but an experiment, a sweep or data, with the command that takes it.
void require_config(const std::string& path);

// Returns the names of all bundled configs, sorted.
std::vector<std::string> config_names();

}  // namespace thimble::cli
