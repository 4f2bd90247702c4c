// Heat maps of matrices in the terminal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/cli/cli.h"

namespace thimble::cli {

// Lines of text and colors.
using Picture = std::vector<std::string>;

// Draws a matrix (rows, columns) with entries in [0, 1] in at most `width` columns, one or two per entry,
// with row numbers; NaN is ?. Entries with a nonzero value in `marked` end in ', unless they have one column
// without color. Empty when the columns do not fit.
Picture heat_map(std::span<const double> values, std::int64_t columns, Colors colors, std::size_t width,
                 std::span<const char> marked = {});

// Draws a matrix with names of its rows and columns, shortened to fit.
Picture heat_map(std::span<const double> values, const std::vector<std::string>& rows,
                 const std::vector<std::string>& columns, Colors colors, std::size_t width);

// Arranges pictures in rows of at most `width` columns, with an empty line above each row.
std::string side_by_side(const std::vector<Picture>& pictures, std::size_t width);

// Returns the text on the shade of a value in [0, 1], as it is without colors.
std::string shaded(std::string_view text, double value, Colors colors);

// Returns the legend of the shades.
std::string legend(Colors colors);

}  // namespace thimble::cli
