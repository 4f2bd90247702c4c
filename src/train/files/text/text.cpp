#include "train/files/text/text.h"

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

// First and last point of each range: controls, separators of lines, annotations, and Default_Ignorable_Code_Point of
// Unicode 15, which includes what changes the direction of text and what has no width. cmake/page.cmake and
// src/addons/lab/page/build.mjs read this table for pages.
constexpr char32_t kHidden[] = {0x0,     0x1F,    0x7F,    0x9F,    0xAD,    0xAD,   0x34F,  0x34F,
                                0x61C,   0x61C,   0x115F,  0x1160,  0x17B4,  0x17B5, 0x180B, 0x180F,
                                0x200B,  0x200F,  0x2028,  0x202E,  0x2060,  0x206F, 0x3164, 0x3164,
                                0xFE00,  0xFE0F,  0xFEFF,  0xFEFF,  0xFFA0,  0xFFA0, 0xFFF0, 0xFFFB,
                                0x1BCA0, 0x1BCA3, 0x1D173, 0x1D17A, 0xE0000, 0xE0FFF};

bool is_hidden(char32_t point) {
  for (std::size_t i = 0; i < std::size(kHidden); i += 2)
    if (kHidden[i] <= point && point <= kHidden[i + 1]) return true;
  return false;
}

// Returns whether the point joins two emoji or chooses how one is drawn.
bool is_mark(char32_t point) { return point == 0x200D || point == 0xFE0E || point == 0xFE0F; }

std::string escaped(const Character& c) {
  return fmt::format("\\{}{{{:x}}}", c.valid ? 'u' : 'x', static_cast<std::uint32_t>(c.point));
}

// Returns the text with hidden characters as `escape` returns them, cut once it has `most` bytes.
template <class F>
std::string with_escapes(std::string_view text, std::size_t most, const F& escape) {
  constexpr int kMaxMarks = 2;  // after a character that can be seen, as in U+2764 U+FE0F U+200D U+1F525
  std::string out;
  int marks = 0;  // that may follow
  while (!text.empty()) {
    if (out.size() >= most) return out + "...";
    const Character next = first_character(text);
    text.remove_prefix(next.bytes.size());
    const bool hidden = !next.valid || is_hidden(next.point);
    const bool allowed = next.valid && is_mark(next.point) && marks > 0;
    out += hidden && !allowed ? escape(next) : std::string(next.bytes);
    marks = allowed ? marks - 1 : hidden || next.point < 0x80 ? 0 : kMaxMarks;
  }
  return out;
}

}  // namespace

Character first_character(std::string_view text) {
  const std::size_t size = character_size(text);
  if (size == 0) return {text.substr(0, 1), static_cast<unsigned char>(text[0]), false};
  return {text.substr(0, size), code_point(text, size), true};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::vector<std::string_view> split_at(char separator, std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; (end = text.find(separator)) != text.npos; text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

bool is_line(std::string_view text) {
  while (!text.empty()) {
    const Character piece = first_character(text);
    if (!piece.valid || is_control(piece.point)) return false;
    text.remove_prefix(piece.bytes.size());
  }
  return true;
}

std::string escape_controls(std::string_view text, std::string_view kept) {
  return with_escapes(text, text.npos, [&](const Character& c) {
    return c.point < 0x20 && kept.find(c.bytes) != kept.npos ? std::string(c.bytes) : escaped(c);
  });
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t size = character_size(text);
    out += size > 0 ? text.substr(0, size) : "\uFFFD";
    const auto begins_one = [&](std::size_t n) {
      return n <= text.size() && character_size(std::string(text.substr(0, n)) + "\x80\x80") > n;
    };
    if (size == 0)
      for (size = 1; begins_one(size + 1);) ++size;
    text.remove_prefix(size);
  }
  return out;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMaxLength = 100;
  return with_escapes(text, kMaxLength, escaped);
}

std::string shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return fmt::format("{}...", text.substr(0, bytes));
}

std::string shell_command(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    const auto is_plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("-_./=:,+@%").find(c) != std::string_view::npos;
    };
    if (!word.empty() && std::ranges::all_of(word, is_plain)) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
    out += '\'';
  }
  return out;
}

std::string shell_path(const std::string& path) {
  return shell_command({path.starts_with('-') ? "./" + path : path});
}

std::string escape_markup(std::string_view text) {
  using Entity = std::pair<char32_t, std::string_view>;
  constexpr Entity kEntities[] = {{'&', "&amp;"},  {'<', "&lt;"}, {'>', "&gt;"},
                                  {'"', "&quot;"}, {0xFFFE, "?"}, {0xFFFF, "?"}};
  const std::string safe = escape_controls(text);
  std::string out;
  for (std::string_view rest = safe; !rest.empty();) {
    const Character piece = first_character(rest);
    const auto entity = std::ranges::find(kEntities, piece.point, &Entity::first);
    out += entity == std::end(kEntities) ? piece.bytes : entity->second;
    rest.remove_prefix(piece.bytes.size());
  }
  return out;
}

std::string escape_controls_in_json(std::string_view json) {
  return with_escapes(json, json.npos, [](const Character& c) {
    if (c.point == '\n') return std::string("\n");
    const auto point = static_cast<std::uint32_t>(c.point);
    if (point < 0x10000) return fmt::format("\\u{:04x}", point);
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (point >> 10), 0xDC00 + (point & 0x3FF));
  });
}

}  // namespace thimble
