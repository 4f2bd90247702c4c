// The comparison of runs as an HTML page.
#pragma once

#include <string>

#include "program/compare/compare.h"

namespace thimble {

// Returns a self-contained HTML page; its bytes depend on the comparison alone.
std::string compare_page(const Comparison&);

}  // namespace thimble
