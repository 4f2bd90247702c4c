// Finds possible mistakes in data files.
#pragma once

#include <string>
#include <vector>

#include "thimble/data/table.h"

namespace thimble {

// Returns a line for each kind of possible mistake: equal inputs with different targets, duplicate rows, and
// a first line that may be a header.
std::vector<std::string> remarks(const Table& table);

}  // namespace thimble
