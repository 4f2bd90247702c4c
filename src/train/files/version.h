// The version of the program.
#pragma once

#include <string_view>

namespace thimble {

// Returns the version, such as "0.2.0".
std::string_view version();

}  // namespace thimble
