// Configs that are called by name: those of the source tree and those that were installed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace thimble::cli {

// Returns the folders that are searched, the first first: configs in the current directory, in the source
// tree that the program was built in, and share/thimble/configs beside the folder of an installed program.
std::vector<std::filesystem::path> config_folders();

// Returns the path itself if something is there, or else the config of that name, such as reverse or
// bench/base. Throws ConfigError with all places that were searched if a name has none; a path that is not
// there is returned for its reader to refuse.
std::string find_config(const std::string& name);

// Returns the names of all configs that find_config finds, sorted.
std::vector<std::string> config_names();

}  // namespace thimble::cli
