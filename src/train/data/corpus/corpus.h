// A text as rows of a language model: the input is tokens, the target the tokens after each of them.
//
// TextForm::lines: every line that is not blank is a document, between boundary tokens: the line break, which
// predicts its first token and is predicted after its last. Lines have at most 1 MiB and end in LF or CRLF.
// TextForm::paragraphs, records: a document has several lines, and its boundary is a token of its own. Line breaks within
// it are tokens, those at its end are not; blank lines at its end are left out, and lines before the first record.
// TextForm::stream: the files are texts as they are, line breaks and carriage returns included, without ends.
// Words are separated by spaces and tabs; line breaks are tokens, too, unless each line is a document. Unless tokens
// are bytes, a text is UTF-8 without NUL, and a byte order mark at its start is no part of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/train/tokenization.h"
#include "train/data/files/file_source.h"

namespace thimble {

class Vocabulary;

class Corpus : public FileSource {
 public:
  // Documents become rows of at most `length` tokens. The hash of its text assigns a document to its split, as in
  // Table, and the documents of a split are in the order of their hashes. The first tokens of a stream are the
  // training split, then validation and test, by shares; with two shares, the last is both. A split that has a
  // file of its own is that file. The vocabulary is that of Table. The text is read twice, first to count its
  // tokens. Throws DataError as Table does, when shares are none, when a split has no document or too few tokens
  // for a row, and when a file changes while it is read.
  Corpus(const DataTexts&, const TextOptions&, std::int64_t length, const DataRecord* trained = nullptr);

  std::int64_t token_count() const { return count_; }  // of the text
  // Returns the tokens of the training split, with the boundaries of documents.
  std::int64_t training_count() const;
  // Returns the first tokens of the training split, at most `limit` and whole documents: with kIgnore before each
  // document, or before a stream.
  std::vector<std::int32_t> training_tokens(std::int64_t limit) const;

  using FileSource::example, FileSource::size, FileSource::where;
  void example(std::int64_t row, Example& out) const override;
  ExampleSize size(std::int64_t row) const override;
  std::string where(std::int64_t row) const override;
  // Draws tokens at random places of the text, then the same again: what follows a token can be told from its first
  // occurrence and not from the language. The first of them have no answer.
  void vary(SampleRng&, Layout, Example&) const override;
  StepOrder step_order() const override { return is_stream() ? StepOrder::drawn : StepOrder::sorted; }
  std::int64_t starts() const override;
  void example_from(std::int64_t start, Example& out) const override;
  std::optional<Layout> suitable_layout() const override { return Layout::position; }
  void check(Layout) const override;
  std::string_view row_name() const override { return is_stream() || !rows_.empty() ? "window" : "document"; }
  std::vector<std::string> remarks(std::int64_t train = kAll) const override;

 private:
  struct Range {
    std::int64_t begin = 0, end = 0;  // tokens
    std::int64_t size() const { return end - begin; }
  };
  struct Piece {
    std::size_t document;  // index in order_
    std::int64_t number;
  };
  // Receives the numbers of the tokens of a document, none for a blank line, or of a part of a stream; its text, and the
  // number of its first line.
  using Visit =
      std::function<void(std::size_t file, std::span<const std::int32_t>, std::string_view, std::size_t)>;

  bool is_stream() const { return text_.documents == TextForm::stream; }
  // Returns whether a document has several lines.
  bool has_lines() const { return text_.documents > TextForm::stream; }
  std::string_view boundary_text() const { return has_lines() ? kDocumentBoundary : "\n"; }
  // Returns how many tokens of a document of `n` are rows: all of them and the boundary, or the first.
  std::int64_t used(std::int64_t n) const {
    return text_.longer == LongDocuments::first ? std::min(n + 1, length_) : n + 1;
  }
  // Returns the tokens of a document that are stored, which the boundaries are not.
  std::span<const std::int32_t> kept_of(std::span<const std::int32_t> document) const {
    return document.first(std::min(document.size(), static_cast<std::size_t>(used(std::ssize(document)))));
  }
  // Returns how far the windows of which a row is one are apart; those of training do not overlap.
  std::int64_t stride_of(std::int64_t row) const {
    return row < splits_[0] || text_.stride == 0 ? length_ : text_.stride;
  }
  // Returns the windows of a part of a split with `tokens` predictions.
  std::int64_t row_count(std::int64_t tokens, Split) const;
  void take_back(std::size_t file, std::uint32_t count) override;
  std::uint32_t stored_of(std::int64_t row) const override { return order_[piece_of(row).document]; }
  void read_file(const DataText&, std::size_t index, Vocabulary&, Problems&, DataFile&, const Visit&);
  void count(const DataTexts&, Vocabulary&, bool trained, std::vector<std::int64_t>& counts);
  void store(const DataTexts&, Vocabulary&, std::span<const std::int32_t> ids);
  std::int32_t token(std::int64_t i) const;
  Range document(std::uint32_t i) const;
  Piece piece_of(std::int64_t row) const;
  // Returns the split of a row of a stream, and sets `row` to the number of its window there.
  std::size_t window_of(std::int64_t& row) const;
  void order_windows();
  void order_documents(bool trained);
  void divide_stream(bool trained);
  void measure();
  void add_remarks(std::vector<std::string>& lines) const;
  std::string where_document(std::uint32_t i) const;
  void copy_window(Range from, std::int64_t first, Example& out) const;
  void leave_out_known(std::int64_t number, std::int64_t stride, Example& out) const;

  TextOptions text_;
  std::int64_t length_, count_ = 0;
  std::vector<std::uint8_t> narrow_;        // tokens of all documents, of a vocabulary of at most 256,
  std::vector<std::uint16_t> wide_;         // or of a larger one
  std::vector<std::uint32_t> ends_;         // of documents, in tokens
  std::vector<std::uint32_t> order_;        // documents: those of training, validation, test
  std::vector<std::uint32_t> rows_;         // rows of the documents up to each in order_; empty: one each
  std::vector<std::uint32_t> lines_;        // the first of each document
  std::array<std::int64_t, 3> left_out_{};  // by file: lines that are blank, or before the first record
  std::array<std::int64_t, 4> starts_{};    // tokens before each file
  std::array<Range, 3> parts_;              // of a stream, by split
  // Of a stream: the windows of validation and of test, in the order of the hashes of their text.
  std::array<std::vector<std::uint32_t>, 2> windows_;
  std::int64_t longer_ = 0;                 // documents with more than one window
  std::int64_t repeated_ = 0;               // documents that are equal to one before them,
  std::array<std::uint32_t, 2> repeats_{};  // and the first of these, after that one
};

}  // namespace thimble
