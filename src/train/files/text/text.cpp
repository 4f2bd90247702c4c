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

struct PointRange {
  char32_t first, last;
};

template <std::size_t N>
bool is_in(const PointRange (&ranges)[N], char32_t point) {
  return std::ranges::any_of(ranges, [&](PointRange r) { return r.first <= point && point <= r.last; });
}

// Controls, separators of lines, annotations, and Default_Ignorable_Code_Point of Unicode 15, which includes
// what changes the direction of text and what has no width.
constexpr PointRange kHidden[] = {{0x0, 0x1F},        {0x7F, 0x9F},       {0xAD, 0xAD},      {0x34F, 0x34F},
                                  {0x61C, 0x61C},     {0x115F, 0x1160},   {0x17B4, 0x17B5},  {0x180B, 0x180F},
                                  {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},  {0x3164, 0x3164},
                                  {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},  {0xFFF0, 0xFFFB},
                                  {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};

// The blocks of Extended_Pictographic; symbols among them that are no emoji do no harm.
constexpr PointRange kPictographs[] = {
    {0xA9, 0xA9},     {0xAE, 0xAE},     {0x203C, 0x203C}, {0x2049, 0x2049},
    {0x2122, 0x2122}, {0x2139, 0x2139}, {0x2194, 0x21AA}, {0x231A, 0x23FF},
    {0x24C2, 0x24C2}, {0x25AA, 0x27BF}, {0x2934, 0x2935}, {0x2B05, 0x2B55},
    {0x3030, 0x3030}, {0x303D, 0x303D}, {0x3297, 0x3299}, {0x1F000, 0x1FAFF}};

constexpr char32_t kFlag = 0x1F3F4;
constexpr PointRange kJoiner[] = {{0x200D, 0x200D}}, kVariation[] = {{0xFE0E, 0xFE0F}},
                     kTags[] = {{0xE0030, 0xE0039}, {0xE0061, 0xE007A}}, kLastTag[] = {{0xE007F, 0xE007F}};

// Returns the bytes of the emoji that the text starts with (Unicode Technical Standard 51), or 0: a keycap,
// the flag of a region of up to six letters, or pictographs that joiners connect.
std::size_t emoji_size(std::string_view text) {
  constexpr std::string_view kKeycap = "\uFE0F\u20E3";
  if (text.size() > kKeycap.size() && text.substr(1).starts_with(kKeycap))
    return std::string_view("0123456789#*").find(text[0]) == text.npos ? 0 : 1 + kKeycap.size();
  std::size_t size = 0;
  const auto take = [&](const auto& ranges) {
    if (size == text.size()) return false;
    const Character next = first_character(text.substr(size));
    if (!next.valid || !is_in(ranges, next.point)) return false;
    size += next.bytes.size();
    return true;
  };
  if (!take(kPictographs)) return 0;
  std::size_t whole = size;
  if (first_character(text).point == kFlag) {
    constexpr int kMaxTags = 6;
    for (int tags = 0; tags < kMaxTags && take(kTags);) ++tags;
    if (take(kLastTag)) return size;
    size = whole;
  }
  for (;;) {
    take(kVariation);
    whole = size;
    if (!take(kJoiner) || !take(kPictographs)) return whole;
  }
}

// Appends the first character or emoji of the text, or what `escape` returns for a hidden character, and
// returns its bytes.
template <class F>
std::size_t append_first(std::string& out, std::string_view text, const F& escape) {
  const Character first = first_character(text);
  const std::size_t emoji = emoji_size(text), size = std::max(emoji, first.bytes.size());
  if (emoji > 0 || (first.valid && !is_in(kHidden, first.point)))
    out += text.substr(0, size);
  else
    out += escape(first);
  return size;
}

std::string escaped(const Character& c) {
  return fmt::format("\\{}{{{:x}}}", c.valid ? 'u' : 'x', static_cast<std::uint32_t>(c.point));
}

// Returns the text with hidden characters other than line breaks as `escape` returns them.
template <class F>
std::string with_escapes(std::string_view text, const F& escape) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty())
    text.remove_prefix(append_first(
        out, text, [&](const Character& c) { return c.point == '\n' ? std::string("\n") : escape(c); }));
  return out;
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

std::string escape_controls(std::string_view text) { return with_escapes(text, escaped); }

std::string printable(std::string_view text) {
  constexpr std::size_t kMaxLength = 100;
  std::string out;
  while (!text.empty() && out.size() < kMaxLength) text.remove_prefix(append_first(out, text, escaped));
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
  return with_escapes(json, [](const Character& c) {
    const auto point = static_cast<std::uint32_t>(c.point);
    if (point < 0x10000) return fmt::format("\\u{:04x}", point);
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (point >> 10), 0xDC00 + (point & 0x3FF));
  });
}

}  // namespace thimble
