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
                           {"\r", "\u240D", "\\u{240D}"},
                           {kDocumentBoundary, "\u00B6", "\\u{b6}"}};

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

// Returns the byte that a name of ByteNames stands for, or -1.
std::int32_t byte_of(std::string_view name) {
  if (name.size() == 1) return name[0];
  if (name.size() != 4) return -1;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  return digit(name[2]) * 16 + digit(name[3]);
}

bool is_blank(char32_t c) { return c <= ' ' && (c == ' ' || c == '\t' || c == '\n' || c == '\r'); }

bool is_space(char32_t c) {
  return is_blank(c) || c == 0xA0 || (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x3000;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return c > ' ' && c != '_' && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  return (c >= 0x2010 && c <= 0x205E && c != 0x202F) || (c >= 0x3001 && c <= 0x3003) || c == 0xA1 ||
         c == 0xAB || c == 0xBB || c == 0xBF;
}

constexpr std::string_view kNames[] = {"spaces", "characters", "words", "bytes", "field"};  // of Tokenization

}  // namespace

ColumnTokens::ColumnTokens(std::string_view names) {
  for (const std::string_view name : split_at(',', names))
    each_.push_back(static_cast<Tokenization>(std::ranges::find(kNames, name) - kNames));
}

ColumnTokens::operator std::string() const {
  std::string out;
  for (const Tokenization one : each_)
    (out += out.empty() ? "" : ",") += kNames[static_cast<std::size_t>(one)];
  return out;
}

void tokenize(std::string_view text, Tokenization how, const std::function<void(std::string_view)>& f) {
  if (how == Tokenization::spaces) {
    while (true) {
      std::size_t start = 0, end = 0;
      while (start < text.size() && is_blank(text[start])) ++start;
      for (end = start; end < text.size() && !is_blank(text[end]);) ++end;
      if (start == end) return;
      f(text.substr(start, end - start));
      text.remove_prefix(end);
    }
  }
  if (how == Tokenization::field) {
    if (const std::string_view field = trimmed(text); !field.empty()) f(field);
    return;
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
  std::string out;
  if (token == kDocumentBoundary) return "\u00B6";
  for (; !token.empty(); token.remove_prefix(first_character(token).bytes.size())) {
    std::string_view shown = first_character(token).bytes;
    for (const Sign& sign : kSigns)
      if (shown == sign.token || shown == sign.shown) {
        shown = shown == sign.token ? sign.shown : sign.escaped;
        break;
      }
    out += shown;
  }
  return out;
}

std::string token_text(const std::vector<std::string>& names, std::span<const std::int32_t> tokens,
                       Tokenization how) {
  const bool spelled = is_spelled(how);
  std::string out;
  for (const std::int32_t token : tokens) {
    const std::string_view name =
        token == kIgnore ? "." : std::string_view(names[static_cast<std::size_t>(token)]);
    const std::string_view real = unshown(name);
    if (const std::int32_t byte = byte_of(real); how == Tokenization::bytes && byte >= 0) {
      out += static_cast<char>(byte);
      continue;
    }
    const bool is_break = real.starts_with('\n');
    if (!spelled && !out.empty() && !is_break && out.back() != '\n') out += ' ';
    out += spelled || is_break ? real : name;
  }
  return how == Tokenization::bytes ? valid_utf8(out) : out;
}

std::vector<std::int32_t> token_bytes(const std::vector<std::string>& names,
                                      std::span<const std::int32_t> tokens) {
  std::vector<std::int32_t> bytes;
  for (const std::int32_t token : tokens)
    bytes.push_back(token == kIgnore ? kIgnore : byte_of(unshown(names[static_cast<std::size_t>(token)])));
  return bytes;
}

}  // namespace thimble
