// Paths that a run is known by, and what stays in a directory when a process is killed.
#pragma once

#include <filesystem>

namespace thimble {

// Throws FileError unless the path is UTF-8, which the JSON that names it must be.
void require_utf8(const std::filesystem::path& path);

// Removes what processes left in the directory that were killed while they wrote a NewFile. Only for the
// holder of its DirectoryLock. Throws std::filesystem::filesystem_error.
void remove_temporary_files(const std::filesystem::path& directory);

}  // namespace thimble
