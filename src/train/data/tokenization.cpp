#include "thimble/train/tokenization.h"

#include <algorithm>

#include "thimble/train/task.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

constexpr std::string_view kSpaceShown = "\u2423", kSpaceSignShown = "\\u{2423}";

bool is_space(char32_t c) {
  return c == ' ' || c == '\t' || c == 0xA0 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x3000;
}

bool is_mark(char32_t c) {
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
  std::size_t start = 0;  // of a run of characters that are one word
  for (std::size_t end = 0; end < text.size();) {
    const Character c = first_character(text.substr(end));
    const bool space = is_space(c.point),
               alone = how == Tokenization::characters || space || is_mark(c.point);
    if (alone && end > start) f(text.substr(start, end - start));
    end += c.bytes.size();
    if (!alone) continue;
    if (how == Tokenization::characters || !space) f(c.bytes);
    start = end;
  }
  if (start < text.size()) f(text.substr(start));
}

std::string shown_token(std::string_view token) {
  return std::string(token == " " ? kSpaceShown : token == kSpaceShown ? kSpaceSignShown : token);
}

std::string token_text(const std::vector<std::string>& names, std::span<const std::int32_t> tokens,
                       Tokenization how) {
  const bool spelled = how == Tokenization::characters;
  std::string out;
  for (const std::int32_t token : tokens) {
    const std::string_view name =
        token == kIgnore ? "." : std::string_view(names[static_cast<std::size_t>(token)]);
    if (!spelled && !out.empty()) out += ' ';
    out += !spelled ? name : name == kSpaceShown ? " " : name == kSpaceSignShown ? kSpaceShown : name;
  }
  return out;
}

}  // namespace thimble
