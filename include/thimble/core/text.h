// Text that others wrote: whether it is UTF-8, and how to quote it in a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thimble {

// Of ASCII.
bool is_control(char c);

// Bytes of the UTF-8 character (RFC 3629) that the text starts with; 0 when it is none, or the text empty.
std::size_t character_size(std::string_view text);

// Bytes before the first one that is not UTF-8; text.size() when all of it is.
std::size_t utf8_size(std::string_view text);

// Whether all of it is UTF-8 without control characters, line breaks among them.
bool is_line(std::string_view text);

// The text for one line of a message: a long one is cut, what is no UTF-8 or a control character becomes '?'.
std::string printable(std::string_view text);

}  // namespace thimble
