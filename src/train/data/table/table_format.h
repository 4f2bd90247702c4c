// The formats of data files: which texts of a line are the input and the target of a row.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "train/data/table/table.h"
#include "train/data/table/table_reader.h"

namespace thimble {

// Returns the parts between commas of a key such as task.input.
std::vector<std::string> parts_of(std::string_view spec);

// The columns of a sequence: by number, or by name until the names are known.
class TableColumns {
 public:
  // Throws DataError for an empty part.
  TableColumns(std::string_view key, const std::string& spec, std::size_t usual);

  bool are_named() const { return !names_.empty(); }
  const std::vector<std::size_t>& numbers() const { return numbers_; }
  std::size_t last() const;

  // Replaces names by their numbers. Throws DataError for a name that is not among `all`, called `what`.
  void find(const std::vector<std::string_view>& all, std::string_view what);

 private:
  std::string_view key_;
  std::vector<std::string> names_;
  std::vector<std::size_t> numbers_;
};

// A reader of the lines of one file.
class RowFormat {
 public:
  virtual ~RowFormat() = default;
  virtual bool takes_blanks() const { return is_open(); }  // whether a blank line is part of the format here
  // Adds the tokens of a line to a row; returns whether the row is complete. Throws DataError, whose message is
  // only the rule, when the line, or the row unless it is still open, breaks one.
  virtual bool read(std::string_view line, SequenceReader& input, SequenceReader& target) = 0;
  // Returns what the row that was read last says of itself.
  virtual const RowMarks& marks() const {
    static const RowMarks none;
    return none;
  }
  // Returns whether lines of a row have been read that is not complete.
  virtual bool is_open() const { return false; }
  // Ends the file; returns whether that completes a row. Throws DataError when the row is cut off.
  virtual bool end() { return false; }
};

// Returns the format of a file of that name with the options.
TableFormat format_of(const std::string& name, const TableOptions&);

// Returns the format of the file. Throws DataError, whose message is only the rule, when the options do not
// determine it, or do not apply to it.
std::unique_ptr<RowFormat> row_format(const DataText&, const TableOptions&);

std::unique_ptr<RowFormat> separated_format(const TableOptions&, bool csv);
std::unique_ptr<RowFormat> json_lines_format(const DataText&, const TableOptions&);
std::unique_ptr<RowFormat> sentences_format(const TableOptions&, bool universal);  // else in columns

// Throws DataError when the start of the file resembles sentences in columns.
void refuse_sentences(const DataText& file, bool csv);

}  // namespace thimble
