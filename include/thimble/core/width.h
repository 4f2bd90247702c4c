// How many columns of a terminal a text takes, and how to make it fit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thimble {

// Columns that UTF-8 text takes: 2 for a wide character, 0 for a combining one. What has no width of its own,
// as a control character or a byte that is not UTF-8, counts as 1.
std::size_t display_width(std::string_view text);

// The text, or as much of its start as fits into `width` columns with a ~ after it. "" for a width of 0.
std::string truncated(std::string_view text, std::size_t width);

// The text with spaces after it, or before it, up to `width` columns.
std::string padded_right(std::string_view text, std::size_t width);
std::string padded_left(std::string_view text, std::size_t width);

}  // namespace thimble
