// Rows of data files, with their vocabulary and splits: those of a Table, or of a Text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "thimble/train/data_record.h"
#include "thimble/train/dataset.h"
#include "thimble/train/file.h"
#include "thimble/train/task.h"

namespace thimble {

// A data file and its content; the extension of the name determines the format unless the options do.
struct TableText {
  std::string name;
  std::string text{};
  std::string unreadable{};                 // why the file cannot be read; "": it was read
  std::shared_ptr<const InputFile> file{};  // read in pieces in place of `text`
};

// The data files of a task, and how they are read.
struct TableTexts {
  TableText main;
  std::optional<TableText> validation{}, test{}, vocabulary{};
  TableOptions options{};
};

class TableVocabulary;

class Rows {
 public:
  virtual ~Rows() = default;

  const std::vector<std::string>& tokens() const { return tokens_; }
  const TableOptions& options() const { return options_; }
  std::int32_t unknown() const { return unknown_; }  // the id of <unk>; kIgnore: there is none
  std::int32_t boundary() const {
    return boundary_;
  }  // the token before and after each document; kIgnore: none
  // Returns how many rows are training, validation and test; rows are in this order.
  const std::array<std::int64_t, 3>& splits() const { return splits_; }
  std::int64_t rows() const { return splits_[0] + splits_[1] + splits_[2]; }
  // Throws DataError, with the file, its problems and the key to set, when a split has no rows.
  void require_rows(Split) const;
  bool disjoint() const { return disjoint_; }  // whether splits share no input, as they come from one file
  ExampleSize longest() const { return longest_; }  // longest input and longest target, in any row
  double chance() const { return chance_; }         // share of the most frequent answer, of all rows
  const std::vector<DataFile>& sources() const { return sources_; }

  virtual void example(std::int64_t row, Example& out) const = 0;  // in the order of the splits
  virtual std::string where(std::int64_t row) const = 0;           // "FILE:LINE"
  virtual double bytes() const = 0;                                // of memory, at most: while it is read

  // Returns the tokens of a row's input, if training puts rows of like lengths together; 0: it does not.
  virtual std::int64_t length_of(std::int64_t /*row*/) const { return 0; }
  virtual std::string_view row_name() const { return "line"; }
  // Returns the number of places at which training may read a row; 0: it reads the rows of the training split.
  virtual std::int64_t places() const { return 0; }
  virtual void example_at(std::int64_t /*place*/, Example& /*out*/) const {}

  // Returns the layout that suits all rows; nothing if none does.
  virtual std::optional<Layout> suitable_layout() const = 0;
  // Throws DataError, with the lines and a layout that suits all rows, when rows cannot be laid out that way.
  virtual void check(Layout) const = 0;
  // Returns a line for each kind of possible mistake in the rows, the first `train` of which are trained on.
  virtual std::vector<std::string> remarks(std::int64_t train = kAll) const = 0;

 protected:
  struct File {
    std::string name;
    std::uint32_t end;  // one past its last row in the order of storage
  };

  explicit Rows(const TableOptions& options) : options_(options) {}

  // Returns the index of the split of a row by the hash of its input, and by its file.
  std::size_t split_of(std::size_t file, std::uint64_t hash) const;
  // Sets tokens_ and unknown_, and returns the id of each number of the vocabulary: in the order of the bytes of
  // tokens, unless a file or a trained model fixes them; that of <unk> for tokens that occur too rarely.
  std::vector<std::int32_t> number_tokens(const TableVocabulary&, std::vector<std::int64_t> counts);
  // Notes why the split, from file `from`, has no rows: its file cannot be read, or `why`. Throws DataError with
  // that reason unless the rows are those of a trained model.
  void set_missing(Split, std::size_t from, const std::string& why, bool trained);

  TableOptions options_;
  std::vector<File> files_;
  std::vector<DataFile> sources_;
  std::array<std::string, 3> unreadable_;  // by file: its problems; "": none
  std::array<std::string, 3> missing_;     // by split: why it has no rows; "": it has rows
  std::vector<std::string> tokens_;
  std::int32_t unknown_ = kIgnore, boundary_ = kIgnore;
  std::array<std::int64_t, 3> splits_{};
  bool disjoint_ = true;
  ExampleSize longest_{};
  double chance_ = 0;
};

// Returns the rows of a config. Throws DataError when its files are not open.
const Rows& rows_of(const TaskConfig&);

// Opens the files that the task config names. Throws DataError when a file is not a regular file or larger than
// 1 GiB; with the record of a trained model, such a file is unreadable instead.
TableTexts open_files(const TaskConfig&, const DataRecord* trained);

// Reads the files that the task config names with Task::open, for a model of that layout, whose record also has
// <begin> and <end> if it is a seq2seq model. Throws DataError also when the model's rows were divided by another
// rule.
std::shared_ptr<const Rows> open_rows(const TaskConfig&, Layout, const DataRecord* trained = nullptr);

}  // namespace thimble
