// Text that others wrote: whether it is UTF-8, and how it is shown.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace thimble {

// Of ASCII.
bool is_control(char c);

// Bytes of the UTF-8 character (RFC 3629) that the text starts with; 0 when it is none, or the text empty.
std::size_t character_size(std::string_view text);

// A character, or a byte that is part of none.
struct Character {
  std::string_view bytes;
  char32_t point;  // or the byte
  bool valid;
};

// Returns what a text that is not empty starts with.
Character first_character(std::string_view text);

// Bytes before the first one that is not UTF-8; text.size() when all of it is.
std::size_t utf8_size(std::string_view text);

// Whether all of it is UTF-8 without control characters (C0, C1), line breaks among them.
bool is_line(std::string_view text);

// Returns the number that all of the text is, which may start with a +; nothing when it is none, or out of
// the range of T.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// Returns the text with everything that could steer a terminal or reorder a line written out: control
// characters but the line break and characters that change the direction of text as \u{9b}, bytes that are
// no UTF-8 as \x{ff}.
std::string escape_controls(std::string_view text);

// Returns an excerpt for one line of a message: escaped, line breaks too, and cut when it is long.
std::string printable(std::string_view text);

// Returns the UTF-8 text, cut between two characters and with "..." at its end if it is longer than `bytes`.
std::string shortened(std::string_view text, std::size_t bytes);

// Returns the UTF-8 text as content or attribute of HTML or XML, ? for what XML has no place for.
std::string escape_markup(std::string_view text);

// Returns the same JSON with the characters that escape_controls() writes out as \u009b.
std::string escape_controls_in_json(std::string_view json);

}  // namespace thimble
