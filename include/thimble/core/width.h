// How many columns of a terminal a text takes, and how to make it fit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

// Columns that UTF-8 text takes: 2 for a wide character, 0 for a combining one. What has no width of its own,
// as a control character or a byte that is not UTF-8, counts as 1.
std::size_t display_width(std::string_view text);

// What a terminal shows as one character each: a character with those of no width that follow it.
std::vector<std::string_view> characters_of(std::string_view text);

// The text, or as much of its start as fits into `width` columns with a ~ after it. "" for a width of 0.
std::string truncated(std::string_view text, std::size_t width);

// The text with spaces after it, or before it, up to `width` columns.
std::string padded_right(std::string_view text, std::size_t width);
std::string padded_left(std::string_view text, std::size_t width);

// The text in lines of at most `width` columns, broken at spaces; lines after the first start with `indent`
// spaces. A word that is too long has a line for itself, whole, so that paths and commands can be copied.
// Ends with a line break.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);

// Lines of text of which those that are wider than `width` are wrapped: what belongs to a line stays below
// its start, or below what stands after a title and two spaces, and below a # stands another one.
std::string reflowed(std::string_view lines, std::size_t width);

}  // namespace thimble
