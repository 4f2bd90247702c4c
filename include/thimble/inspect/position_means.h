// Means of maps (rows, columns) over sequences of different sizes, such as attention weights (queries, keys).
// Each cell is the mean over the sequences that have its row and its column, so that padding counts nowhere.
// Where sizes differ, cells are means over different sequences, and rows of distributions need not sum to 1.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "thimble/train/json.h"

namespace thimble {

// How many sequences have a number of rows and of columns.
using SizeCounts = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;

// Means by position, counted from the start or from the end: the last position of every sequence is then the
// last row and column. NaN where no sequence has the cell. from_end is empty where all sizes are the same.
struct PositionMeans {
  std::vector<double> from_start, from_end;
};

class PositionSums {
 public:
  PositionSums(std::int64_t rows, std::int64_t columns);  // of the largest sequence

  // Adds the map (rows, columns) of a sequence, whose rows start `stride` values apart.
  template <class T>
  void add(const T* values, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
    if (!grow(rows, columns)) return add_at(from_start_, 0, 0, values, stride, rows, columns);
    add_at(from_start_, 0, 0, values, stride, rows, columns);
    add_at(from_end_, rows_ - rows, columns_ - columns, values, stride, rows, columns);
  }

  const SizeCounts& sizes() const { return sizes_; }
  const std::vector<double>& sums() const { return from_start_; }
  // Returns how many sequences have each cell; in a map from the end, cell (i, j) has the count of cell
  // (rows - 1 - i, columns - 1 - j).
  std::vector<std::int64_t> counts() const;
  PositionMeans means() const;

 private:
  // Counts a size. Returns whether sums from the end differ from those from the start.
  bool grow(std::int64_t rows, std::int64_t columns);
  template <class T>
  void add_at(std::vector<double>& sums, std::int64_t first_row, std::int64_t first_column, const T* values,
              std::int64_t stride, std::int64_t rows, std::int64_t columns) const {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        sums[static_cast<std::size_t>((first_row + i) * columns_ + first_column + j)] +=
            static_cast<double>(values[i * stride + j]);
  }

  std::int64_t rows_, columns_;
  SizeCounts sizes_;
  std::vector<double> from_start_, from_end_;  // from_end_ is empty while all maps are of full size
};

// The part of a map that some sequence has.
struct MeasuredPart {
  std::int64_t rows = 0, columns = 0;
};
// Returns it for counts from the start, with `columns` in a row.
MeasuredPart measured_part(std::span<const std::int64_t> counts, std::int64_t columns);

// Returns that part of a map from the start.
template <class T>
std::vector<T> cropped(std::span<const T> map, std::int64_t columns, MeasuredPart part) {
  std::vector<T> out;
  for (std::int64_t i = 0; i < part.rows; ++i) {
    const auto row =
        map.subspan(static_cast<std::size_t>(i * columns), static_cast<std::size_t>(part.columns));
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

// Returns over how many sequences the cells are means, without cells of none: "67 sequences", "1 to 67 sequences".
std::string sequences_text(std::span<const std::int64_t> counts);

// Return a map as rows, with null for NaN.
Json map_json(std::span<const double> map, std::int64_t columns);
Json map_json(std::span<const std::int64_t> map, std::int64_t columns);

}  // namespace thimble
