// Pictures of matrices in the terminal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/cli.h"

namespace thimble::cli {

// Lines of text and colors.
using Picture = std::vector<std::string>;

// A matrix (rows, columns) with entries in 0 .. 1 as a picture of at most `width` columns, one or two an
// entry, with the numbers of rows. Empty when there are more columns than fit side by side.
Picture heat_map(std::span<const double> values, std::int64_t columns, Colors colors, std::size_t width);

// A picture with a name for each row and, above them, for each column, shortened to fit.
Picture heat_map(std::span<const double> values, const std::vector<std::string>& rows,
                 const std::vector<std::string>& columns, Colors colors, std::size_t width);

// Pictures in reading order, as many side by side as `width` has room for, with an empty line above each row
// of them.
std::string side_by_side(const std::vector<Picture>& pictures, std::size_t width);

// What the shades mean.
std::string legend(Colors colors);

}  // namespace thimble::cli
