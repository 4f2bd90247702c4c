// Tables for the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace thimble::cli {

// A table of labels, on the left, and cells. A column is as wide as its widest cell and a space.
class TextTable {
 public:
  struct Column {
    std::string title;
    std::size_t min_width = 0;  // width, with the space before it
    int rank = 0;  // columns of the lowest are left out first, and of these the last; below 0 even before
                   // long labels get lines of their own
    bool is_left = false;  // where its cells stand
  };

  TextTable(std::string title, std::vector<Column> columns);

  // Adds a row: a cell for each column, or fewer.
  void add(std::string label, std::vector<std::string> cells);
  // Adds text between rows.
  void add_text(std::string text);

  // Returns the table in `width` columns of a terminal. Where it does not fit, long labels get lines of their own and
  // columns are left out, which the last line names.
  std::string text(std::size_t width) const;

 private:
  struct Row {
    std::string label;  // or text
    std::vector<std::string> cells;
    bool is_text = false;
  };

  std::string title_;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace thimble::cli
