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
  spaces,      // what is between spaces
  characters,  // every Unicode code point, spaces included
  // Every run of letters, digits, underscores and other characters beyond ASCII, and every punctuation mark:
  // \w+|[^\w\s]. Marks are those of ASCII, of U+2010 to U+205E and of U+3001 to U+3003, and ¡ « » ¿. Spaces,
  // tabs, and the spaces U+A0, U+2000 to U+200A, U+202F and U+3000 separate.
  words,
  bytes,  // every byte: ASCII as it is, others as \x80
};

inline constexpr std::string_view kUnknownToken =
    "<unk>";  // in place of tokens that are not in the vocabulary

// Calls f with each token of a text that is UTF-8, or that has any bytes if they are the tokens.
void tokenize(std::string_view text, Tokenization, const std::function<void(std::string_view)>& f);

// Returns how a token is shown, and typed: a space as ␣, and the line break, tab and carriage return of a text as
// ⏎, ⇥ and ␍; a real ␣ is shown as \u{2423}, and so are the others.
std::string shown_token(std::string_view token);

// Returns the tokens, by the names with which they are shown, as one text: characters and bytes without anything
// between them, others with spaces, but around line breaks. kIgnore, no answer, is ".".
std::string token_text(const std::vector<std::string>& names, std::span<const std::int32_t> tokens,
                       Tokenization = Tokenization::spaces);

}  // namespace thimble
