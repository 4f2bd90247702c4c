// Paths of runs, and temporary files that killed processes leave behind.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

namespace thimble {

// Throws FileError unless the path is UTF-8, as the JSON that contains it must be.
void require_utf8(const std::filesystem::path& path);

// Returns runs/NAME-HASH, where HASH is 8 hexadecimal digits of the hash of the content.
std::filesystem::path path_under_runs(const std::string& name, std::string_view content);

// Removes the temporary files of processes that were killed while they wrote a NewFile in the directory, if
// they have not changed for the time `age`: 0 if the caller holds its DirectoryLock. Throws
// std::filesystem::filesystem_error.
void remove_temporary_files(const std::filesystem::path& directory, std::chrono::seconds age = {});

}  // namespace thimble
