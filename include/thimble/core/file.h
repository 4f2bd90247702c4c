// Files, read whole and written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "thimble/core/error.h"

namespace thimble {

// Throws FileError, naming the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// Writes to a temporary file beside `path`, flushes it to the disk and renames it, so that `path` holds the
// old content or the new one and nothing in between, even if the machine stops. Throws FileError.
void write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace thimble
