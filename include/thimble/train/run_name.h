// Names of directories under runs/.
#pragma once

#include <string>

#include "thimble/config/config.h"

namespace thimble {

// Returns the values whose hash a name has. Paths of data files below the current folder, which has runs/ too, are
// relative to it, so that a project that moves keeps its names.
std::string named_values(Config config);

}  // namespace thimble
