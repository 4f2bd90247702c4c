#include "program/compare/assignment.h"

#include <limits>

namespace thimble {

namespace {

// Returns the column of each row, for at most as many rows as columns. `u` and `v` are the dual prices: cost -
// u - v >= 0, and = 0 for matched pairs. Column 0 is a dummy that the row to be added starts at.
std::vector<std::int64_t> assign_rows(const DoubleMatrix& gains) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto n = static_cast<std::size_t>(gains.rows), m = static_cast<std::size_t>(gains.cols);
  std::vector<double> u(n + 1), v(m + 1);
  std::vector<std::size_t> row_of(m + 1), before(m + 1);  // rows from 1; 0: none
  for (std::size_t row = 1; row <= n; ++row) {
    std::vector<double> slack(m + 1, kInfinity);
    std::vector<bool> reached(m + 1);
    std::size_t column = 0;
    row_of[0] = row;
    do {
      reached[column] = true;
      const std::size_t i = row_of[column];
      double smallest = kInfinity;
      std::size_t next = 0;
      for (std::size_t j = 1; j <= m; ++j) {
        if (reached[j]) continue;
        const double cost =
            -gains(static_cast<std::int64_t>(i) - 1, static_cast<std::int64_t>(j) - 1) - u[i] - v[j];
        if (cost < slack[j]) {
          slack[j] = cost;
          before[j] = column;
        }
        if (slack[j] < smallest) {
          smallest = slack[j];
          next = j;
        }
      }
      for (std::size_t j = 0; j <= m; ++j) {
        if (reached[j]) {
          u[row_of[j]] += smallest;
          v[j] -= smallest;
        } else {
          slack[j] -= smallest;
        }
      }
      column = next;
    } while (row_of[column] != 0);
    for (; column != 0; column = before[column]) row_of[column] = row_of[before[column]];
  }
  std::vector<std::int64_t> columns(n, -1);
  for (std::size_t j = 1; j <= m; ++j)
    if (row_of[j] != 0) columns[row_of[j] - 1] = static_cast<std::int64_t>(j) - 1;
  return columns;
}

}  // namespace

std::vector<std::int64_t> assign(const DoubleMatrix& gains) {
  if (gains.rows <= gains.cols) return assign_rows(gains);
  std::vector<std::int64_t> columns(static_cast<std::size_t>(gains.rows), -1);
  const std::vector<std::int64_t> rows = assign_rows(transposed(gains));
  for (std::size_t j = 0; j < rows.size(); ++j)
    columns[static_cast<std::size_t>(rows[j])] = static_cast<std::int64_t>(j);
  return columns;
}

}  // namespace thimble
