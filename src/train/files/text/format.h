// Numbers, sizes and durations as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace thimble {

// Returns "0.9873", "12500", "never" for infinity and "-" for NaN: integers below 1e8 in full, other numbers
// with `digits` significant digits.
std::string format_number(double x, int digits = 4);

// Returns the integer with a comma between groups of three digits: "108,098".
std::string grouped(std::int64_t n);

// Returns the number and the noun, with an s unless n is 1: "1 problem", "3 problems".
std::string counted(std::int64_t n, std::string_view noun);

// Returns the size in the largest unit that keeps it at 1 or more: "1.5 KiB", "12 B".
std::string format_bytes(double bytes);

// Returns the duration in its two largest units: "12 s", "3 min 05 s", "2 h 40 min".
std::string format_duration(double seconds);

}  // namespace thimble
