// Untrusted text: validation as UTF-8, numbers, and escaping.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

// Returns whether c is a control character of ASCII.
bool is_control(char c);

// Returns the number of bytes of the UTF-8 character (RFC 3629) that the text starts with; 0 when the text is
// empty or does not start with one.
std::size_t character_size(std::string_view text);

// A character, or a byte that is not part of one.
struct Character {
  std::string_view bytes;
  char32_t point;  // or the byte
  bool valid;
};

// Returns the first character of a text that is not empty.
Character first_character(std::string_view text);

// Returns the number of bytes before the first that is not UTF-8; text.size() when there is none.
std::size_t utf8_size(std::string_view text);

// Returns whether the text is UTF-8 without control characters (C0, C1), which include line breaks.
bool is_line(std::string_view text);

// Returns the number that the whole text represents, with an optional +; nothing when it does not represent
// one, or one outside the range of T.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// Returns the text without the spaces, tabs and line breaks at its ends.
std::string_view trimmed(std::string_view text);

// Returns the parts of the text between separators, one more than it has of them.
std::vector<std::string_view> split_at(char separator, std::string_view text);

// Returns the text with everything escaped that could control a terminal, reorder a line or hide in it, as
// \u{9b}: control characters other than line breaks, and characters that change the direction of text or
// cannot be seen; bytes that are not UTF-8 as \x{ff}. Up to two joiners (U+200D) and variation selectors (U+FE0E,
// U+FE0F) may follow a character beyond ASCII that can be seen, so that emoji stay whole; elsewhere they are
// escaped, so that no text consists of them, nor differs from another of ASCII by them alone. `kept`: control
// characters that stay.
std::string escape_controls(std::string_view text, std::string_view kept = "\n");

// Returns the text with U+FFFD in place of each start of a character that is cut short, and of each other byte that is
// not UTF-8, as the Unicode standard recommends and Python does.
std::string valid_utf8(std::string_view text);

// Returns the words as a command of a POSIX shell.
std::string shell_command(const std::vector<std::string>& words);

// Returns a path as a word of such a command, which takes it for no option.
std::string shell_path(const std::string& path);

// Returns an excerpt for one line of a message: escaped, including line breaks, and shortened.
std::string printable(std::string_view text);

// Returns the UTF-8 text, cut between two characters and with "..." at its end if it is longer than `bytes`.
std::string shortened(std::string_view text, std::size_t bytes);

// Returns the text escaped for HTML or XML, after escape_controls(), with ? for characters that XML does not
// allow.
std::string escape_markup(std::string_view text);

// Returns the JSON with the characters that escape_controls() escapes written as \u009b.
std::string escape_controls_in_json(std::string_view json);

}  // namespace thimble
