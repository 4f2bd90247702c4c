// Pairs of an input and a target, read from data files.
//
// Tab-separated (.tsv, .txt): a row a line, in columns; the first column is the input and the second the
// target unless TableOptions say otherwise. With `separator`, a line is cut in two at its first occurrence,
// and spaces around it are dropped. Comma-separated (.csv): RFC 4180; `separator` replaces the comma, or a first line such as
// sep=; does. Several columns are joined by a space. JSON Lines (.jsonl), an object a line:
// {"input": ["the", 2, "cats"], "target": "le 2 chats"}. A sequence is a list of texts and integers, which are
// tokens as they are, a text, or one integer; null in the list of a target is a position without an answer. A row may have
// "attends": [[query, key, "kind"], ...], positions from 0 in the model's input (keys in the source, of an encoder-decoder)
// that a query should attend to, of at most 32 kinds; and "varied": true, which makes it an example of Split::varied.
// CoNLL-U (.conllu): a row a sentence, a token a line; comments, ranges (1-2) and empty nodes (1.1) are
// skipped; several fields of a token are joined by |, and spaces in them are replaced by _. conll (.conll, .bio,
// .iob): likewise in columns, at tabs or else at spaces, whose spaces stay, of which the last is the target; -DOCSTART- lines
// are skipped.
//
// Texts become tokens by TableOptions::input_tokens and target_tokens. A token of a target that equals
// TableOptions::no_answer is a position without an answer; \ before it makes it that token. All formats: UTF-8,
// with or without a byte order mark, lines of at most 1 MiB that end in LF or CRLF, none of them blank but
// between sentences and within quotes. A row of several lines has the number of the first. A token has
// 1 to 4096 bytes, without control characters other than tabs and line breaks, and without spaces unless it is one. Sequences have 1 to 8192 tokens, a target at least one answer. A vocabulary file has a
// token on each line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/data/files/file_source.h"

namespace thimble {

// What became of the texts of inputs, or of targets: there were none, a token each at most, or several tokens of one.
enum class Cut { none, whole, apart };

// Counts of what a table left out or replaced.
struct TableCounts {
  std::int64_t too_long = 0;      // rows with more than max_tokens
  std::int64_t empty = 0;         // rows with an empty field
  std::int64_t no_answers = 0;    // positions of targets with the marker
  std::int64_t blank_inputs = 0;  // tokens of inputs that equal the marker
  std::array<Cut, 2> cuts{};      // of inputs, and of targets
};

// An alignment of a stored row.
struct RowAlignment {
  std::uint32_t row;
  Alignment alignment;
};

// Rows as a table keeps them. A hash is the XXH3-64 of the tokens of an input, each followed by a NUL byte; that of a row goes
// on with the target likewise, with "\0" alone for no answer.
struct TableRows {
  std::vector<std::int32_t> ids;        // tokens of all inputs and targets
  std::vector<std::uint32_t> ends;      // in ids: of input 0, target 0, input 1, ...
  std::vector<std::uint32_t> lines;     // of rows, from 1
  std::vector<std::uint64_t> hashes;    // of rows
  std::vector<std::uint32_t> varied;    // rows that are varied, ascending
  std::vector<RowAlignment> attends;    // ascending by row
  std::vector<std::string> kind_names;  // of alignments
  TableCounts counts;
};

// Pairs of an input and a target.
class Table : public FileSource {
 public:
  // The vocabulary is that of the vocabulary file, in its order, or else the tokens that occur, sorted by
  // their bytes, as TableOptions select them. The hash of its input's text, before tokens are replaced, assigns a
  // row of the main file to its split, by split_of_hash, or to training if that split has a file of its own; a
  // split's rows are in the order of the hashes of their texts. So no row's place depends on the other rows.
  // Throws DataError when a line breaks the rules above, a token is not in the vocabulary, there are more than
  // 65536 tokens, or a split gets no row. Its message is a summary and then the first 20 problems,
  // "FILE:LINE: rule; remedy".
  //
  // With the record of a trained model, tokens keep their ids, the vocabulary file is not read, and `longest`
  // is at least what it was. A file that has problems or cannot be read, or an answer that the model has no output for,
  // then has no rows; require_rows() reports why. Of hypotheses all problems are thrown.
  explicit Table(const DataTexts&, const DataRecord* trained = nullptr);

  using FileSource::example, FileSource::size, FileSource::where;
  void example(std::int64_t row, Example& out) const override;
  ExampleSize size(std::int64_t row) const override { return stored_size(stored_of(row)); }
  std::string where(std::int64_t row) const override { return stored_where(stored_of(row)); }
  // Draws a row that is varied; if there is none, shuffles the input and the target of a row, and puts the start of another
  // row in front, as far as it fits. Its alignments move along with the tokens.
  void vary(SampleRng&, Layout, Example&) const override;
  bool shuffles() const override { return rows_.varied.empty(); }
  StepOrder step_order() const override { return StepOrder::dealt; }
  std::optional<Layout> suitable_layout() const override;
  void check(Layout) const override;
  std::string_view row_name() const override { return "line"; }
  // Returns also what was left out, replaced, or never occurs in the rows that are trained on.
  std::vector<std::string> remarks(std::int64_t train = kAll) const override;
  const TableCounts& counts() const { return rows_.counts; }

  std::uint32_t stored_of(std::int64_t row) const override { return order_[static_cast<std::size_t>(row)]; }
  // Returns what to do if few different inputs may be labels; "" if they may not.
  std::string columns_remedy() const;
  std::span<const std::int32_t> input(std::uint32_t row) const;
  std::span<const std::int32_t> target(std::uint32_t row) const;
  std::uint64_t input_hash(std::uint32_t row) const { return input_hashes_[row]; }
  std::string stored_where(std::uint32_t row) const;  // "FILE:LINE"
  std::uint32_t main_rows() const { return given_[0].end; }

 private:
  bool is_varied(std::uint32_t row) const override { return std::ranges::binary_search(rows_.varied, row); }
  ExampleSize stored_size(std::uint32_t row) const;
  void stored_example(std::uint32_t row, Example& out) const;
  void check_alignments(Layout, Problems&) const;
  void take_back(std::size_t file, std::uint32_t count) override;
  void read(const DataTexts&, const DataRecord* trained);
  void check_answers(const DataRecord& trained, std::uint32_t first, const DataText&, Problems&) const;
  void set_ids(const Vocabulary&);
  void measure();

  TableRows rows_;                    // stored rows
  std::vector<std::uint32_t> order_;  // those of training, validation, test
  bool suits_sequence_ = true, suits_position_ = true,
       suits_next_ = true;  // whether all rows can be laid out so
};

}  // namespace thimble
