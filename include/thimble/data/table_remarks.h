// What in a table may be a mistake.
#pragma once

#include <string>
#include <vector>

#include "thimble/data/table.h"

namespace thimble {

// Returns a line for each kind: equal inputs with different targets, repeated rows, and a first line that
// looks like names of columns.
std::vector<std::string> remarks(const Table& table);

}  // namespace thimble
