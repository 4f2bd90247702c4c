#include "thimble/inspect/position_means.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace thimble {

PositionSums::PositionSums(std::int64_t rows, std::int64_t columns)
    : rows_(rows), columns_(columns), from_start_(static_cast<std::size_t>(rows * columns)) {}

bool PositionSums::grow(std::int64_t rows, std::int64_t columns) {
  sizes_[{rows, columns}] += 1;
  const bool is_full = rows == rows_ && columns == columns_;
  if (!is_full && from_end_.empty()) from_end_ = from_start_;
  return !from_end_.empty();
}

std::vector<std::int64_t> PositionSums::counts() const {
  std::vector<std::int64_t> counts(from_start_.size());
  for (const auto& [size, count] : sizes_)
    counts[static_cast<std::size_t>((size.first - 1) * columns_ + size.second - 1)] = count;
  // Adds up from the last row and column: a sequence has every cell before its last one.
  for (std::int64_t i = rows_ - 1; i >= 0; --i) {
    std::int64_t below = 0;  // of this row and the columns after j
    for (std::int64_t j = columns_ - 1; j >= 0; --j) {
      std::int64_t& cell = counts[static_cast<std::size_t>(i * columns_ + j)];
      below += cell;
      cell = below + (i + 1 < rows_ ? counts[static_cast<std::size_t>((i + 1) * columns_ + j)] : 0);
    }
  }
  return counts;
}

PositionMeans PositionSums::means() const {
  const std::vector<std::int64_t> counts = this->counts();
  const auto divided = [](std::vector<double> sums, auto count) {
    for (double& x : sums) {
      x = *count > 0 ? x / static_cast<double>(*count) : std::numeric_limits<double>::quiet_NaN();
      ++count;
    }
    return sums;
  };
  PositionMeans means{.from_start = divided(from_start_, counts.begin()), .from_end = {}};
  if (sizes_.size() > 1) means.from_end = divided(from_end_, counts.rbegin());
  return means;
}

MeasuredPart measured_part(std::span<const std::int64_t> counts, std::int64_t columns) {
  MeasuredPart part;
  const auto width = static_cast<std::size_t>(columns);
  for (std::size_t row = 0; row < counts.size(); row += width) part.rows += counts[row] > 0;
  for (std::size_t column = 0; column < width; ++column) part.columns += counts[column] > 0;
  return part;
}

std::string sequences_text(std::span<const std::int64_t> counts) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (const std::int64_t count : counts) {
    if (count > 0) least = std::min(least, count);
    most = std::max(most, count);
  }
  return fmt::format("{}{} sequence{}", least < most ? fmt::format("{} to ", least) : "", most,
                     most == 1 ? "" : "s");
}

namespace {

template <class T, class F>
Json rows_of(std::span<const T> map, std::int64_t columns, const F& cell) {
  Json rows = Json::array();
  for (auto at = map.begin(); at != map.end();) {
    Json& row = rows.emplace_back(Json::array());
    for (std::int64_t j = 0; j < columns; ++j) row.push_back(cell(*at++));
  }
  return rows;
}

}  // namespace

Json map_json(std::span<const double> map, std::int64_t columns) {
  return rows_of(map, columns, [](double x) { return std::isnan(x) ? Json() : Json(x); });
}

Json map_json(std::span<const std::int64_t> map, std::int64_t columns) {
  return rows_of(map, columns, [](std::int64_t x) { return Json(x); });
}

}  // namespace thimble
