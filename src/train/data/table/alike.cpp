#include "train/data/table/alike.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "thimble/train/tokenization.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

// Letters and what they become with a combining mark (Unicode 15, Latin-1 and Latin Extended-A).
constexpr std::pair<std::string_view, std::string_view> kMarks[] = {
    {"\u0300", "AÀEÈIÌOÒUÙaàeèiìoòuù"},
    {"\u0301", "AÁCĆEÉIÍLĹNŃOÓRŔSŚUÚYÝZŹaácćeéiílĺnńoórŕsśuúyýzź"},
    {"\u0302", "AÂCĈEÊGĜHĤIÎJĴOÔSŜUÛWŴYŶaâcĉeêgĝhĥiîjĵoôsŝuûwŵyŷ"},
    {"\u0303", "AÃIĨNÑOÕUŨaãiĩnñoõuũ"},
    {"\u0304", "AĀEĒIĪOŌUŪaāeēiīoōuū"},
    {"\u0306", "AĂEĔGĞIĬOŎUŬaăeĕgğiĭoŏuŭ"},
    {"\u0307", "CĊEĖGĠIİZŻcċeėgġzż"},
    {"\u0308", "AÄEËIÏOÖUÜYŸaäeëiïoöuüyÿ"},
    {"\u030A", "AÅUŮaåuů"},
    {"\u030B", "OŐUŰoőuű"},
    {"\u030C", "CČDĎEĚNŇRŘSŠTŤZŽcčdďeěnňrřsštťzž"},
    {"\u0327", "CÇGĢKĶLĻNŅRŖSŞTŢcçgģkķlļnņrŗsştţ"},
    {"\u0328", "AĄEĘIĮUŲaąeęiįuų"}};

// Returns the composed letters with what they are composed of.
std::map<std::string_view, std::string> compositions() {
  std::map<std::string_view, std::string> all;
  for (auto [mark, letters] : kMarks) {
    while (!letters.empty()) {
      const std::string_view letter = first_character(letters).bytes;
      letters.remove_prefix(letter.size());
      const std::string_view composed = first_character(letters).bytes;
      letters.remove_prefix(composed.size());
      all.emplace(composed, std::string(letter) + std::string(mark));
    }
  }
  return all;
}

// Returns the token with \u{e9} for characters beyond ASCII.
std::string with_code_points(const std::string& token) {
  std::string out;
  tokenize(token, Tokenization::characters, [&](std::string_view c) {
    out +=
        c.size() == 1 ? c : fmt::format("\\u{{{:x}}}", static_cast<std::uint32_t>(first_character(c).point));
  });
  return out;
}

bool is_unseen(char32_t c) {  // a space that is none, or without width
  return c == 0xA0 || c == 0xAD || (c >= 0x2000 && c <= 0x200D) || (c >= 0x202A && c <= 0x202F) ||
         c == 0x2060 || c == 0x3000 || (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF;
}

}  // namespace

std::string alike_remark(const std::vector<std::string>& tokens) {
  const std::map<std::string_view, std::string> parts = compositions();
  std::map<std::string, const std::string*> plain;  // by the text that is seen
  std::size_t pairs = 0;
  std::string first;
  for (const std::string& token : tokens) {
    std::string seen;
    bool hidden = false;
    tokenize(token, Tokenization::characters, [&](std::string_view c) {
      const auto found = parts.find(c);
      const bool is_hidden = is_unseen(first_character(c).point);
      hidden |= is_hidden;
      if (!is_hidden) seen += found == parts.end() ? c : found->second;
    });
    const auto [other, added] = plain.try_emplace(seen, &token);
    if (added && !hidden) continue;
    if (pairs++ > 0) continue;
    first = added ? fmt::format("token {} has a character that is not seen", with_code_points(token))
                  : fmt::format("tokens {} and {} look the same", with_code_points(*other->second),
                                with_code_points(token));
  }
  if (pairs == 0) return "";
  return first + (pairs > 1 ? fmt::format(" (and {} more)", pairs - 1) : "") +
         "; write such tokens in one way";
}

}  // namespace thimble
