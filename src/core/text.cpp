#include "thimble/core/text.h"

#include <algorithm>

namespace thimble {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

std::size_t character_size(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  if (byte(0) < 0xC2 || byte(0) > 0xF4) return 0;
  const std::size_t size = byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if (text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Longer than need be, a surrogate, or beyond U+10FFFF.
  if ((byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xED && byte(1) > 0x9F) ||
      (byte(0) == 0xF0 && byte(1) < 0x90) || (byte(0) == 0xF4 && byte(1) > 0x8F))
    return 0;
  return size;
}

std::size_t utf8_size(std::string_view text) {
  std::size_t valid = 0;
  while (const std::size_t size = character_size(text.substr(valid))) valid += size;
  return valid;
}

bool is_line(std::string_view text) {
  return utf8_size(text) == text.size() && std::ranges::none_of(text, is_control);
}

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 100;
  std::string out;
  while (!text.empty() && out.size() < kLongest) {
    const std::size_t size = character_size(text);
    if (size == 0 || is_control(text[0]))
      out += '?';
    else
      out += text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return text.empty() ? out : out + "...";
}

}  // namespace thimble
