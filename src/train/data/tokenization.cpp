#include "thimble/train/tokenization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "thimble/train/task.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

struct Sign {
  std::string_view token, shown, escaped;  // escaped: how a token that equals `shown` is shown
};

constexpr Sign kSigns[] = {{" ", "\u2423", "\\u{2423}"},
                           {"\n", "\u23CE", "\\u{23CE}"},
                           {"\t", "\u21E5", "\\u{21E5}"},
                           {"\r", "\u240D", "\\u{240D}"}};

// Returns the token that is shown like this.
std::string_view unshown(std::string_view name) {
  for (const Sign& sign : kSigns)
    if (name == sign.shown || name == sign.escaped) return name == sign.shown ? sign.token : sign.shown;
  return name;
}

// The names of bytes as tokens.
struct ByteNames {
  std::array<std::string, 256> names;

  ByteNames() {
    for (std::size_t i = 0; i < names.size(); ++i)
      names[i] = i < 0x80 ? std::string(1, static_cast<char>(i)) : fmt::format("\\x{:02x}", i);
  }
};

// Returns the byte that a name of ByteNames stands for.
char byte_of(std::string_view name) {
  if (name.size() == 1) return name[0];
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  return static_cast<char>(digit(name[2]) * 16 + digit(name[3]));
}

bool is_space(char32_t c) {
  return c == ' ' || c == '\t' || c == 0xA0 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x3000;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return c > ' ' && c != '_' && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  return (c >= 0x2010 && c <= 0x205E && c != 0x202F) || (c >= 0x3001 && c <= 0x3003) || c == 0xA1 ||
         c == 0xAB || c == 0xBB || c == 0xBF;
}

}  // namespace

void tokenize(std::string_view text, Tokenization how, const std::function<void(std::string_view)>& f) {
  if (how == Tokenization::spaces) {
    while (true) {
      text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
      if (text.empty()) return;
      const std::string_view token = text.substr(0, text.find(' '));
      f(token);
      text.remove_prefix(token.size());
    }
  }
  if (how == Tokenization::bytes) {
    static const ByteNames bytes;
    for (const char c : text) f(bytes.names[static_cast<unsigned char>(c)]);
    return;
  }
  std::size_t start = 0;  // of a run of characters that are one word
  for (std::size_t end = 0; end < text.size();) {
    const Character c = first_character(text.substr(end));
    const bool space = is_space(c.point),
               alone = how == Tokenization::characters || space || is_punctuation(c.point);
    if (alone && end > start) f(text.substr(start, end - start));
    end += c.bytes.size();
    if (!alone) continue;
    if (how == Tokenization::characters || !space) f(c.bytes);
    start = end;
  }
  if (start < text.size()) f(text.substr(start));
}

std::string shown_token(std::string_view token) {
  for (const Sign& sign : kSigns)
    if (token == sign.token || token == sign.shown)
      return std::string(token == sign.token ? sign.shown : sign.escaped);
  return std::string(token);
}

std::string token_text(const std::vector<std::string>& names, std::span<const std::int32_t> tokens,
                       Tokenization how) {
  const bool spelled = how == Tokenization::characters || how == Tokenization::bytes;
  std::string out;
  for (const std::int32_t token : tokens) {
    const std::string_view name =
        token == kIgnore ? "." : std::string_view(names[static_cast<std::size_t>(token)]);
    const std::string_view real = unshown(name);
    if (how == Tokenization::bytes && token != kIgnore && name != kUnknownToken) {
      out += byte_of(real);
      continue;
    }
    if (!spelled && !out.empty() && real != "\n" && out.back() != '\n') out += ' ';
    out += spelled || real == "\n" ? real : name;
  }
  return out;
}

}  // namespace thimble
