#include "program/cli/text/text_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "train/files/text/width.h"

namespace thimble::cli {

TextTable::TextTable(std::string title, std::vector<Column> columns)
    : title_(std::move(title)), columns_(std::move(columns)) {}

void TextTable::add(std::string label, std::vector<std::string> cells) {
  rows_.push_back({std::move(label), std::move(cells)});
}

void TextTable::add_text(std::string text) { rows_.push_back({std::move(text), {}, true}); }

std::string TextTable::text(std::size_t width) const {
  constexpr std::size_t kIndent = 2, kMinLabel = 12;
  std::size_t label_width = display_width(title_);
  std::vector<std::size_t> widths;  // 0: the column is left out
  for (const Column& column : columns_)
    widths.push_back(std::max(column.min_width, display_width(column.title) + 1));
  for (const Row& row : rows_) {
    if (!row.is_text) label_width = std::max(label_width, display_width(row.label));
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row.cells[i]) + 1);
  }
  const auto sum = [&] { return std::accumulate(widths.begin(), widths.end(), std::size_t{0}); };
  std::vector<std::string> left_out;
  const auto leave_out = [&](int below) {
    while (label_width + sum() > width && left_out.size() + 1 < columns_.size()) {
      std::size_t first = columns_.size();
      for (std::size_t i = 0; i < columns_.size(); ++i)
        if (widths[i] > 0 && columns_[i].rank < below &&
            (first == columns_.size() || columns_[i].rank <= columns_[first].rank))
          first = i;
      if (first == columns_.size()) break;
      widths[first] = 0;
      const std::string& title = columns_[first].title;
      left_out.push_back(title.substr(0, title.find_last_not_of(' ') + 1));
    }
  };
  leave_out(0);
  const std::size_t room = width - std::min(width, sum());
  if (label_width > std::max(room, kMinLabel)) label_width = room >= kMinLabel ? room : kIndent;
  leave_out(std::numeric_limits<int>::max());

  std::string out;
  const auto add_line = [&](const std::string& label, const std::vector<std::string>& cells) {
    const bool fits = display_width(label) <= label_width;
    if (!fits) out += wrapped(label, width, kIndent);
    std::string line = padded_right(fits ? label : "", label_width);
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (widths[i] > 0)
        line += columns_[i].is_left ? ' ' + padded_right(cells[i], widths[i] - 1)
                                    : padded_left(cells[i], widths[i]);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  add_line(title_, titles);
  for (const Row& row : rows_) {
    if (row.is_text)
      out += wrapped(row.label, width, row.label.find_first_not_of(' ') + kIndent);
    else
      add_line(row.label, row.cells);
  }
  if (!left_out.empty())
    out += wrapped(fmt::format("Not shown in {} columns: {}; see --json.", width, fmt::join(left_out, ", ")),
                   width);
  return out;
}

}  // namespace thimble::cli
