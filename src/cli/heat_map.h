// Pictures of matrices, at most 80 columns wide.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thimble::cli {

// A matrix (rows, columns) with entries in 0 .. 1 as a picture, one or two characters an entry, with the
// numbers of rows.
std::string heat_map(const std::vector<double>& values, std::int64_t columns, bool colour);

// The same with a name for each row and, above them, for each column, shortened to fit. "" when there are
// more columns than fit side by side.
std::string heat_map(std::span<const double> values, const std::vector<std::string>& rows,
                     const std::vector<std::string>& columns, bool colour);

// What the shades mean.
std::string_view legend(bool colour);

// Characters of UTF-8 text.
std::size_t characters(std::string_view text);

// The text, or its start and a ~ when it has more than `width` characters.
std::string shortened(std::string_view text, std::size_t width);

}  // namespace thimble::cli
