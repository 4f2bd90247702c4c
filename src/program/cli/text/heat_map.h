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

// A matrix with entries in [0, 1], or NaN for none; `marked` entries (nonzero) rest on little.
struct NumberedMatrix {
  std::string title;
  std::vector<double> values;
  std::int64_t columns;
  std::vector<char> marked;
};

// Matrices drawn side by side, with row numbers.
struct DrawnMaps {
  std::string text;
  std::int64_t shared = 1;  // rows, and columns, that share a cell, which shows the largest entry
};

// The most lines of up to four maps, titles included.
inline constexpr std::size_t kMapLines = 24;

// Draws matrices in at most `width` columns and kMapLines lines for every four: in colors two rows share a line of half blocks,
// and cells without an unmarked entry are gray; otherwise a cell has one or two characters, ? for NaN, and ends in ' where it
// is marked and has two.
DrawnMaps draw_maps(std::span<const NumberedMatrix> matrices, Colors colors, std::size_t width);

// Draws a matrix with names of its rows and columns, shortened to fit.
Picture heat_map(std::span<const double> values, const std::vector<std::string>& rows,
                 const std::vector<std::string>& columns, Colors colors, std::size_t width);

// Arranges pictures in rows of at most `width` columns, `gap` apart, with an empty line above each row.
std::string side_by_side(const std::vector<Picture>& pictures, std::size_t width, std::size_t gap = 3);

// Returns the text on the shade of a value in [0, 1], as it is without colors.
std::string shaded(std::string_view text, double value, Colors colors);

// Returns the legend of the shades.
std::string legend(Colors colors);

}  // namespace thimble::cli
