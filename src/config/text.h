// What a config file must be before it is YAML.
#pragma once

#include <string>
#include <string_view>

#include "config/report.h"

namespace thimble::config {

// The contents of a file. Throws ConfigError when it cannot be read, is no regular file, such as a pipe that
// may never end, or is far too large for a config.
std::string read_file(const std::string& path);

// Reports the first byte that does not belong into a config: broken UTF-8, a control character, which
// yaml-cpp may take for the end of the file, or a tab in an indentation, about which its message is hard to
// understand.
bool check_text(std::string_view text, int file, Report& report);

// UTF-8 text, cut between two characters and with "..." at its end if it is longer than `bytes`.
std::string shortened(std::string_view text, std::size_t bytes);

}  // namespace thimble::config
