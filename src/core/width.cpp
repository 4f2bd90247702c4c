#include "thimble/core/width.h"

#include <clocale>
#include <cstdint>
#include <cwchar>

#include "thimble/core/text.h"

namespace thimble {

namespace {

// The code point of a whole UTF-8 character.
wchar_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  std::uint32_t code = character.size() == 1 ? first : first & (0x7Fu >> character.size());
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return static_cast<wchar_t>(code);
}

// Columns of a whole character, by the tables of the C library for UTF-8, whatever locale the program runs
// in.
std::size_t columns(wchar_t code) {
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr) return 1;
  const locale_t before = ::uselocale(utf8);
  const int width = ::wcwidth(code);
  ::uselocale(before);
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

// Takes the first character off a text that is not empty; returns its columns.
std::size_t take(std::string_view& text) {
  const std::size_t size = character_size(text);
  const std::size_t width = size == 0 ? 1 : columns(code_point(text.substr(0, size)));
  text.remove_prefix(size == 0 ? 1 : size);
  return width;
}

std::string spaces(std::string_view text, std::size_t width) {
  const std::size_t used = display_width(text);
  return std::string(used < width ? width - used : 0, ' ');
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) width += take(text);
  return width;
}

std::string truncated(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::string_view rest = text;
  std::size_t used = 0, kept = 0;
  while (used < width) {
    kept = text.size() - rest.size();
    used += take(rest);
  }
  return std::string(text.substr(0, kept)) + "~";
}

std::string padded_right(std::string_view text, std::size_t width) {
  return std::string(text) + spaces(text, width);
}

std::string padded_left(std::string_view text, std::size_t width) {
  return spaces(text, width) + std::string(text);
}

}  // namespace thimble
