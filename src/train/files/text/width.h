// The width of text in columns of a terminal, and functions that fit text into one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

// Returns the columns of UTF-8 text: 2 for a wide character, 0 for a combining one, 1 for a control character
// or a byte that is not UTF-8.
std::size_t display_width(std::string_view text);

// Returns the text split into characters of a terminal: each with the combining ones that follow it.
std::vector<std::string_view> characters_of(std::string_view text);

// Returns the text, or as much of its start as fits into `width` columns with a ~ after it; "" for a width of
// 0.
std::string truncated(std::string_view text, std::size_t width);

// Returns the text with spaces after it (padded_right) or before it (padded_left), up to `width` columns.
std::string padded_right(std::string_view text, std::size_t width);
std::string padded_left(std::string_view text, std::size_t width);

// Returns rows of words below each other, in aligned columns and in as many blocks of lines as the width requires, with
// `between` two of them. Each block begins with the first words of the rows, in `title` columns.
std::string aligned(std::span<const std::vector<std::string>> rows, std::size_t title, std::size_t width,
                    std::string_view between = "");

// Returns the text in lines of at most `width` columns, broken at spaces; lines after the first start with
// `indent` spaces, at most half of the width. A word that is too long has a line of its own and stays whole, so
// that paths and commands can be copied; a % stays with its number. The result ends with a line break.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);

// Returns values as a line of bars from 0 to `highest`: block elements, or with `plain` ASCII characters; a space for a
// value that is not finite.
std::string bars(std::span<const double> values, double highest, bool plain);

// Returns the lines with those that are wider than `width` wrapped. The continuation of a line is indented
// like its start, or like the text after a title and two spaces; that of a # comment starts with # too.
std::string reflowed(std::string_view lines, std::size_t width);

}  // namespace thimble
