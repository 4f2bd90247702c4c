#include "thimble/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

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
  // An overlong form, a surrogate, or beyond U+10FFFF.
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

namespace {

// Returns the code point of a valid character of `size` bytes.
char32_t code_point(std::string_view text, std::size_t size) {
  constexpr unsigned char kFirst[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t point = static_cast<unsigned char>(text[0]) & kFirst[size];
  for (std::size_t i = 1; i < size; ++i) point = point << 6 | (static_cast<unsigned char>(text[i]) & 0x3F);
  return point;
}

bool is_control(char32_t point) { return point < 0x20 || (point >= 0x7F && point < 0xA0); }

// Returns whether the character is one of Unicode's Bidi_Control, or a line or paragraph separator.
bool moves_text(char32_t point) {
  return point == 0x61C || point == 0x200E || point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069);
}

bool is_harmless(const Character& c) { return c.valid && !is_control(c.point) && !moves_text(c.point); }

void append_escaped(std::string& out, const Character& piece) {
  if (is_harmless(piece))
    out += piece.bytes;
  else
    out += fmt::format("\\{}{{{:x}}}", piece.valid ? 'u' : 'x', static_cast<std::uint32_t>(piece.point));
}

}  // namespace

Character first_character(std::string_view text) {
  const std::size_t size = character_size(text);
  if (size == 0) return {text.substr(0, 1), static_cast<unsigned char>(text[0]), false};
  return {text.substr(0, size), code_point(text, size), true};
}

bool is_line(std::string_view text) {
  while (!text.empty()) {
    const Character piece = first_character(text);
    if (!piece.valid || is_control(piece.point)) return false;
    text.remove_prefix(piece.bytes.size());
  }
  return true;
}

std::string escape_controls(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character piece = first_character(text);
    if (piece.point == '\n')
      out += '\n';
    else
      append_escaped(out, piece);
    text.remove_prefix(piece.bytes.size());
  }
  return out;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMaxLength = 100;
  std::string out;
  while (!text.empty() && out.size() < kMaxLength) {
    const Character piece = first_character(text);
    append_escaped(out, piece);
    text.remove_prefix(piece.bytes.size());
  }
  return text.empty() ? out : out + "...";
}

std::string shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return fmt::format("{}...", text.substr(0, bytes));
}

std::string escape_markup(std::string_view text) {
  using Entity = std::pair<char32_t, std::string_view>;
  constexpr Entity kEntities[] = {{'&', "&amp;"},  {'<', "&lt;"}, {'>', "&gt;"},
                                  {'"', "&quot;"}, {0xFFFE, "?"}, {0xFFFF, "?"}};
  std::string out;
  while (!text.empty()) {
    const Character piece = first_character(text);
    const auto entity = std::ranges::find(kEntities, piece.point, &Entity::first);
    out += entity == std::end(kEntities) ? piece.bytes : entity->second;
    text.remove_prefix(piece.bytes.size());
  }
  return out;
}

std::string escape_controls_in_json(std::string_view json) {
  std::string out;
  while (!json.empty()) {
    const Character piece = first_character(json);
    if (is_harmless(piece) || piece.point == '\n')
      out += piece.bytes;
    else
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(piece.point));
    json.remove_prefix(piece.bytes.size());
  }
  return out;
}

}  // namespace thimble
