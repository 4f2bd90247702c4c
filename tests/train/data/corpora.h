// Texts as rows, for tests.
#pragma once

#include <string>

#include "thimble/engine/error.h"
#include "thimble/train/tokenization.h"
#include "train/data/corpus/corpus.h"

inline const thimble::TextOptions kTextLines{}, kTextStream{.documents = thimble::TextForm::stream};

// "⏎ab" > "ab⏎": a row, its tokens as they are shown.
inline std::string shown_row(const thimble::FileSource& rows, std::int64_t row) {
  thimble::Example e;
  rows.example(row, e);
  std::string out;
  for (const auto* ids : {&e.input, &e.target}) {
    out += ids == &e.target ? ">" : "";
    for (const std::int32_t id : *ids)
      out += id == thimble::kIgnore ? "." : thimble::shown_token(rows.tokens()[static_cast<std::size_t>(id)]);
  }
  return out;
}

// A text of `count` different words, which has documents of every split.
inline std::string lines_of_words(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("w{}\n", i);
  return text;
}

inline std::string text_problem(const std::string& text, const thimble::TextOptions& options,
                                std::int64_t length = 4, thimble::DataTexts texts = {}) {
  texts.main = {"t.txt", text};
  try {
    thimble::Corpus(texts, options, length);
  } catch (const thimble::DataError& e) {
    return e.what();
  }
  return "none";
}

// A text whose files are all given, so that any size will do.
inline thimble::Corpus given_text(const std::string& train, thimble::TextOptions options, std::int64_t length,
                                  thimble::TableOptions table = {}) {
  return thimble::Corpus({.main = {"t.txt", train},
                          .validation = {{"v.txt", "ab\n"}},
                          .test = {{"w.txt", "ba\n"}},
                          .vocabulary = {},
                          .options = table},
                         options, length);
}
