// The formats of data files: which texts of a line are the input and the target of a row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/data/table/table.h"
#include "train/data/table/table_reader.h"

namespace thimble {

// A reader of the lines of one file.
class RowFormat {
 public:
  virtual ~RowFormat() = default;
  virtual bool blanks() const { return false; }  // whether blank lines are part of the format
  // Adds the tokens of a line to a row; returns whether the row is complete. Throws DataError, whose message is
  // only the rule, when the line breaks one.
  virtual bool read(std::string_view line, SequenceReader& input, SequenceReader& target) = 0;
  // Returns whether lines of a row have been read that is not complete.
  virtual bool is_open() const { return false; }
};

// Returns the format of the file. Throws DataError, whose message is only the rule, when the options do not
// determine it, or do not apply to it.
std::unique_ptr<RowFormat> row_format(const std::string& name, const TableOptions&);

}  // namespace thimble
