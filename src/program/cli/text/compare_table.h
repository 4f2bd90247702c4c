// The text of a comparison of runs.
#pragma once

#include <cstddef>
#include <string>

#include "program/compare/compare.h"

namespace thimble::cli {

// Returns results, curves, configs and matched heads in lines of `width` columns, at least 40. `all`: also the
// config keys whose values are the same. `plain`: curves in ASCII characters.
std::string compare_text(const Comparison& comparison, bool all, bool plain, std::size_t width);

}  // namespace thimble::cli
