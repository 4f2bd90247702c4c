// Rows of data files, with their vocabulary and splits: those of a Table, or of a Corpus.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thimble/train/data_record.h"
#include "thimble/train/file.h"
#include "thimble/train/source.h"
#include "train/data/files/problems.h"

namespace thimble {

// A data file and its content; the extension of the name determines the format unless the options do.
struct DataText {
  std::string name;
  std::string text{};
  std::string unreadable{};                 // why the file cannot be read; "": it was read
  std::shared_ptr<const InputFile> file{};  // read in pieces in place of `text`
  // Its rows are hypotheses on a model of that layout: targets may be missing.
  std::optional<Layout> hypotheses{};
};

// The data files of a task, and how they are read.
struct DataTexts {
  DataText main;
  std::optional<DataText> validation{}, test{}, vocabulary{};
  TableOptions options{};

  // Returns the files of rows; null: there is none.
  std::array<const DataText*, 3> rows() const {
    return {&main, validation ? &*validation : nullptr, test ? &*test : nullptr};
  }
};

class Vocabulary;

// A source whose rows are read from files. Stored rows are lines or documents: those of the main file, of the validation
// file and of the test file.
class FileSource : public Source {
 public:
  const TableOptions& options() const { return config_.options; }
  // Returns how many rows are training, validation and test; rows are in this order.
  const std::array<std::int64_t, 3>& splits() const { return splits_; }
  std::int64_t rows() const { return splits_[0] + splits_[1] + splits_[2]; }
  // Number rows in the order of the splits.
  virtual void example(std::int64_t row, Example& out) const = 0;
  virtual ExampleSize size(std::int64_t row) const = 0;
  virtual std::string where(std::int64_t row) const = 0;

  std::int64_t rows(Split split) const override { return splits_[static_cast<std::size_t>(split)]; }
  double chance() const override { return chance_; }
  double distinct_inputs() const override;
  DataConfig sizes(DataConfig wanted) const override;
  void require_rows(Split) const override;
  void example(Split split, std::int64_t index, Example& out) const override {
    example(first(split) + index, out);
  }
  ExampleSize size(Split split, std::int64_t index) const override { return size(first(split) + index); }
  std::string where(Split split, std::int64_t index) const override { return where(first(split) + index); }

 protected:
  struct File {
    std::string name;
    std::uint32_t end;  // one past its last stored row
  };
  // Reads a file: reports its problems, and sets what is known of it.
  using Read = std::function<void(std::size_t index, const DataText&, Problems&, DataFile&)>;

  std::int64_t Coincidences::*coincidence(Split, std::int64_t index, const Example&,
                                          const Hashes& texts) const override;
  std::uint64_t text_hash(Split split, std::int64_t index) const override {
    return input_hashes_[stored_of(first(split) + index)];
  }
  FileSource(const char* task, const DataTexts&);

  // Reads the files one after another. Takes back the rows of one that cannot be read or, of a trained model, has problems,
  // whose reason require_rows() reports. Throws DataError with all problems otherwise.
  void read_files(const DataTexts&, Problems&, bool trained, const Read& read);
  // Removes the stored rows from `count` on, of that file.
  virtual void take_back(std::size_t file, std::uint32_t count) = 0;
  std::uint32_t stored() const { return static_cast<std::uint32_t>(input_hashes_.size()); }

  std::size_t file_of(std::uint32_t stored) const;
  // Returns whether a stored row is in no split, but an example of Split::varied.
  virtual bool is_varied(std::uint32_t /*stored*/) const { return false; }
  // Returns the index of the split of a stored row: by the hash of its input, and by its file.
  std::size_t split_of(std::size_t file, std::uint64_t hash) const;
  // Returns the stored rows of each split, in the order of their hashes, then of storage. Throws as set_missing does of a
  // split without any, with a further `remedy`.
  std::array<std::vector<std::uint32_t>, 3> ordered(std::span<const std::uint64_t> hashes,
                                                    std::string_view unit, std::string_view remedy,
                                                    bool trained);
  // Sets tokens_ and unknown_, and returns the id of each number of the vocabulary: in the order of the bytes of
  // tokens, unless a file or a trained model fixes them; that of <unk> for tokens that occur too rarely.
  std::vector<std::int32_t> number_tokens(const Vocabulary&, std::vector<std::int64_t> counts);
  // Notes why the split, from file `from`, has no rows: its file cannot be read, or `why`. Throws DataError with
  // that reason unless the rows are those of a trained model.
  void set_missing(Split, std::size_t from, const std::string& why, bool trained);
  // Returns the stored row that a row is, or is a part of.
  virtual std::uint32_t stored_of(std::int64_t row) const = 0;
  std::int64_t first(Split split) const {
    return split == Split::train ? 0 : splits_[0] + (split == Split::test ? splits_[1] : 0);
  }
  // Sets the accuracy of the best constant answer from how often each token is one.
  void set_chance(std::span<const std::int64_t> answers);

  std::vector<File> given_;
  std::vector<std::uint64_t>
      input_hashes_;  // of the text of each stored row's input, before tokens become <unk>
  std::array<std::string, 3> unreadable_;  // by file: its problems; "": none
  std::array<std::string, 3> missing_;     // by split: why it has no rows; "": it has rows
  std::array<std::int64_t, 3> splits_{};
  bool has_windows_ = false;    // whether rows are windows of longer documents
  bool is_hypotheses_ = false;  // whether all rows are of the test split
  double chance_ = 0;
};

// Opens the files that the task config names. Throws DataError when a file is not a regular file or larger than
// 1 GiB; with the record of a trained model, such a file is unreadable instead.
DataTexts open_files(const TaskConfig&, const DataRecord* trained);

}  // namespace thimble
