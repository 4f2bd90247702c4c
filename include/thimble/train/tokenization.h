// How a text becomes tokens, and tokens a text. The rules name their characters, so that they are the same on
// every system and in the lab.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

enum class Tokenization {
  spaces,      // what is between spaces, tabs and line breaks
  characters,  // every Unicode code point, spaces included
  // Every run of letters, digits, underscores and other characters beyond ASCII, and every punctuation mark:
  // \w+|[^\w\s]. Marks are those of ASCII, of U+2010 to U+205E and of U+3001 to U+3003, and ¡ « » ¿. Spaces,
  // tabs, line breaks, and the spaces U+A0, U+2000 to U+200A, U+202F and U+3000 separate.
  words,
  bytes,  // every byte: ASCII as it is, others as \x80
  field,  // all of it, without the spaces, tabs and line breaks at its ends
};

// Returns whether tokens are joined to a text without anything between them.
constexpr bool is_spelled(Tokenization how) {
  return how == Tokenization::characters || how == Tokenization::bytes;
}

// How the columns of a sequence become tokens: all as one text, or each in its own way.
class ColumnTokens {
 public:
  ColumnTokens(Tokenization all = Tokenization::spaces) : each_{all} {}
  // From and to the names of Tokenization, joined by commas.
  explicit ColumnTokens(std::string_view names);
  explicit operator std::string() const;

  std::size_t size() const { return each_.size(); }
  Tokenization of(std::size_t column) const { return each_[each_.size() == 1 ? 0 : column]; }
  // Returns how the tokens are joined to a text.
  Tokenization joined() const { return each_.size() == 1 ? each_[0] : Tokenization::spaces; }
  // Returns whether the columns are joined by a space and are one text.
  bool are_one_text() const { return each_.size() == 1 && each_[0] != Tokenization::field; }

  bool operator==(const ColumnTokens&) const = default;

 private:
  std::vector<Tokenization> each_;  // one for all columns, or one for each
};

inline constexpr std::string_view kUnknownToken =
    "<unk>";  // in place of tokens that are not in the vocabulary

// The token between documents of several lines, shown as ¶; no text has it.
inline constexpr std::string_view kDocumentBoundary = "\n\n";

// Calls f with each token of a text that is UTF-8, or that has any bytes if they are the tokens.
void tokenize(std::string_view text, Tokenization, const std::function<void(std::string_view)>& f);

// Returns how a token is shown, and typed: spaces as ␣, and line breaks, tabs and carriage returns as ⏎, ⇥ and ␍, and
// kDocumentBoundary as ¶; a real ␣ is shown as \u{2423}, and so are the others.
std::string shown_token(std::string_view token);

// Returns the tokens, by the names with which they are shown, as one text: characters and bytes without anything
// between them, others with spaces, but around line breaks. kIgnore, no answer, is "."; bytes that are not UTF-8 are
// U+FFFD.
std::string token_text(const std::vector<std::string>& names, std::span<const std::int32_t> tokens,
                       Tokenization = Tokenization::spaces);

// Returns the byte that each token of Tokenization::bytes is; -1 for <unk> and kIgnore.
std::vector<std::int32_t> token_bytes(const std::vector<std::string>& names,
                                      std::span<const std::int32_t> tokens);

}  // namespace thimble
