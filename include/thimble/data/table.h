// Pairs of an input and a target, read from data files.
//
// JSON Lines (.jsonl), an object a line: {"input": ["the", 2, "cats"], "target": "le 2 chats"}. A sequence is
// a list of texts and integers, a text that is split at its spaces, or one integer; null in the list of a
// target is a position without an answer. Tab-separated (.tsv, .txt), a pair a line: INPUT, one tab, TARGET,
// both split at their spaces; _ in a target is a position without an answer. Both: UTF-8, lines of at most 1
// MiB that end in LF or CRLF, none of them blank. A token is a text of 1 to 255 bytes without spaces and
// control characters; the integer 2 is the token "2". Sequences have 1 to 8192 tokens, a target at least one
// answer. A vocabulary file has a token on each line.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "thimble/data/data_record.h"
#include "thimble/data/dataset.h"
#include "thimble/data/task.h"

namespace thimble {

// A file and its content; the extension of the name determines the format.
struct TableText {
  std::string name;
  std::string text;
  std::string unreadable{};  // why the file cannot be read; "": it was read
};

// The data files of a table.
struct TableTexts {
  TableText main;
  std::optional<TableText> validation, test, vocabulary;
};

// The rows of data files, with their vocabulary and splits.
class Table {
 public:
  // The vocabulary is that of the vocabulary file, in its order, or else all tokens that occur, sorted by
  // their bytes. split_by_hash assigns a row of the main file to its split, or to training if that split has
  // a file of its own. Throws DataError when a line breaks the rules above, a token is not in the vocabulary,
  // there are more than 65536 tokens, or a split gets no row. Its message is a summary and then the first 20
  // problems, "FILE:LINE: rule; remedy".
  //
  // With the record of a trained model, tokens keep their ids, the vocabulary file is not read, and `longest`
  // is at least what it was. A file that has problems or cannot be read then has no rows; require_rows()
  // reports why.
  explicit Table(const TableTexts&, const DataRecord* trained = nullptr);

  const std::vector<std::string>& tokens() const { return tokens_; }
  std::int64_t rows() const { return static_cast<std::int64_t>(order_.size()); }
  // Returns how many rows are training, validation and test; rows are in this order.
  const std::array<std::int64_t, 3>& splits() const { return splits_; }
  // Throws DataError, with the file, its problems and the key to set, when a split has no rows.
  void require_rows(Split) const;
  bool disjoint() const { return disjoint_; }  // whether splits share no input, as they come from one file
  void example(std::int64_t row, Example& out) const;  // in the order of the splits

  ExampleSize longest() const { return longest_; }  // longest input and longest target, in any row
  double chance() const { return chance_; }         // share of the most frequent answer
  double bytes() const;                             // of memory that the table takes
  const std::vector<DataFile>& sources() const { return sources_; }

  // Throws DataError, with the lines and a layout that suits all rows, when rows cannot be laid out that way.
  void check(Layout) const;

  // Rows in the order of storage: those of the main file, of the validation file and of the test file.
  std::span<const std::int32_t> input(std::uint32_t row) const;
  std::span<const std::int32_t> target(std::uint32_t row) const;
  std::string where(std::uint32_t row) const;  // "FILE:LINE"
  std::uint32_t main_rows() const { return files_[0].end; }

 private:
  struct File {
    std::string name;
    std::uint32_t end;  // one past its last row; row i of a file is its line i + 1
  };

  ExampleSize size(std::uint32_t row) const;  // of a stored row
  void read_files(const TableTexts&, const DataRecord* trained);
  void assign_splits(bool trained);
  void measure();
  std::optional<Layout> suitable_layout() const;

  std::vector<File> files_;
  std::vector<DataFile> sources_;
  std::array<std::string, 3> unreadable_;  // by file: its problems; "": none
  std::array<std::string, 3> missing_;     // by split: why it has no rows; "": it has rows
  std::vector<std::string> tokens_;
  std::vector<std::int32_t> ids_;     // tokens of all inputs and targets
  std::vector<std::uint32_t> ends_;   // in ids_: of input 0, target 0, input 1, ...
  std::vector<std::uint32_t> order_;  // stored rows: those of training, validation, test
  std::array<std::int64_t, 3> splits_{};
  bool disjoint_ = true;
  ExampleSize longest_{};
  double chance_ = 0;
};

// Reads the files that the task config names. Throws DataError as Table does, and without the record of a
// trained model also when a file cannot be read, is not a regular file or is larger than 1 GiB.
Table load_table(const TaskConfig&, const DataRecord* trained = nullptr);

// Does what load_table does, for a model of that layout, whose record also has <begin> and <end> if it is a
// seq2seq model. Replaces the paths of files that have moved since training.
std::shared_ptr<const Table> open_table(TaskConfig&, Layout, const DataRecord* trained = nullptr);

}  // namespace thimble
