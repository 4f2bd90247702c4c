// Pairs of an input and a target that somebody wrote into files.
//
// JSON Lines (.jsonl), an object a line: {"input": ["the", 2, "cats"], "target": "le 2 chats"}. A sequence is
// a list of texts and integers, a text that is split at its spaces, or one integer; null in the list of a
// target asks for no answer there. Tab-separated (.tsv, .txt), a pair a line: INPUT, one tab, TARGET, both
// split at their spaces; _ in a target asks for no answer there. Both: UTF-8, lines of at most 1 MiB that end
// in LF or CRLF, none of them blank. A token is a text of 1 to 255 bytes without spaces and control
// characters; the integer 2 is the token "2". Sequences have 1 to 8192 tokens, a target at least one answer.
// A vocabulary file has a token on each line.
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

// A file and what is in it; the end of the name says the format.
struct TableText {
  std::string name;
  std::string text;
  std::string unreadable{};  // why the file cannot be read; "": it can
};

struct TableTexts {
  TableText main;
  std::optional<TableText> validation, test, vocabulary;
};

class Table {
 public:
  // The vocabulary is the vocabulary file's, in its order, or else all tokens that occur, sorted by their
  // bytes. A row of the main file belongs to the split that split_by_hash says, or to training where that split
  // has a file of its own. Throws DataError, whose message is a summary and then the problems, "FILE:LINE:
  // rule, remedy", the first 20 of them: what is not as above; a token that is not in the vocabulary; more
  // than 65536 tokens; a split that gets no row.
  //
  // With the record of a trained model its tokens keep their ids, the vocabulary file is not read, and
  // `longest` is at least what it was; a file with problems, or that cannot be read, is one without rows,
  // until require() is asked for a split of it.
  explicit Table(const TableTexts&, const DataRecord* trained = nullptr);

  const std::vector<std::string>& tokens() const { return tokens_; }
  std::int64_t rows() const { return static_cast<std::int64_t>(order_.size()); }
  // How many rows are training, validation and test; in this order they stand.
  const std::array<std::int64_t, 3>& splits() const { return splits_; }
  // Throws DataError, with the file, why it cannot be read and the key to set, when a split has no rows.
  void require_rows(Split) const;
  bool disjoint() const { return disjoint_; }  // whether splits share no input: there is one file
  void example(std::int64_t row, Example& out) const;

  ExampleSize longest() const { return longest_; }  // input and target, of the same row or not
  double chance() const { return chance_; }         // share of the most frequent answer
  const std::vector<DataFile>& sources() const { return sources_; }

  // Throws DataError, with the lines and the layout that suits all rows, unless they can be laid out that
  // way.
  void check(Layout) const;

  // Of a row as it is stored: those of the main file, of validation and of test, one after the other.
  std::span<const std::int32_t> input(std::uint32_t row) const;
  std::span<const std::int32_t> target(std::uint32_t row) const;
  std::string where(std::uint32_t row) const;  // "FILE:LINE"
  std::uint32_t main_rows() const { return files_[0].end; }

 private:
  struct File {
    std::string name;
    std::uint32_t end;  // one past its last row; row i of a file is its line i + 1
  };

  ExampleSize size(std::uint32_t row) const;  // of a row as it is stored
  void read(std::uint32_t row, Example& out) const;
  void read_files(const TableTexts&, const DataRecord* trained);
  void assign_splits(bool trained);
  void measure();
  std::optional<Layout> suitable_layout() const;

  std::vector<File> files_;
  std::vector<DataFile> sources_;
  std::array<std::string, 3> unreadable_;  // by file: what is wrong with it; "": nothing
  std::array<std::string, 3> missing_;     // by split: why it has no rows; "": it has some
  std::vector<std::string> tokens_;
  std::vector<std::int32_t> ids_;     // of all inputs and targets, one after the other
  std::vector<std::uint32_t> ends_;   // in ids_: of input 0, target 0, input 1, ...
  std::vector<std::uint32_t> order_;  // stored rows: those of training, validation, test
  std::array<std::int64_t, 3> splits_{};
  bool disjoint_ = true;
  ExampleSize longest_{};
  double chance_ = 0;
};

// The table that the paths of the task config name. Throws DataError when a file cannot be read, is not a
// regular one, is larger than 1 GiB, and as Table does; with the record of a trained model only as Table
// does.
Table load_table(const TaskConfig&, const DataRecord* trained = nullptr);

// load_table for a model of that layout, whose record, when it was trained, has the marks of answers as well.
// Paths of files that have moved since become those where they are now.
std::shared_ptr<const Table> open_table(TaskConfig&, Layout, const DataRecord* trained = nullptr);

}  // namespace thimble
