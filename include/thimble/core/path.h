// Paths that a run is known by, and what stays in a directory when a process is killed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace thimble {

// Throws FileError unless the path is UTF-8, which the JSON that names it must be.
void require_utf8(const std::filesystem::path& path);

// Returns runs/NAME-HASH, HASH being 8 digits of that of the content.
std::filesystem::path path_under_runs(const std::string& name, std::string_view content);

// Removes what processes left in the directory that were killed while they wrote a NewFile. Only for the
// holder of its DirectoryLock. Throws std::filesystem::filesystem_error.
void remove_temporary_files(const std::filesystem::path& directory);

}  // namespace thimble
