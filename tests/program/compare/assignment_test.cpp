#include "program/compare/assignment.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "catch.h"

using namespace thimble;

namespace {

DoubleMatrix random_gains(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  DoubleMatrix gains(rows, cols);
  std::uint64_t state = seed * 2654435761U + 1;
  for (double& gain : gains.values) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    gain = static_cast<double>(state >> 40) / 1e7 - 0.5;
  }
  return gains;
}

double sum_of(const DoubleMatrix& gains, const std::vector<std::int64_t>& columns) {
  double sum = 0;
  for (std::size_t r = 0; r < columns.size(); ++r)
    if (columns[r] >= 0) sum += gains(static_cast<std::int64_t>(r), columns[r]);
  return sum;
}

// Returns the largest sum of gains over all ways to give each row a column, for at most as many rows as
// columns.
double best_sum(const DoubleMatrix& gains) {
  std::vector<std::int64_t> columns(static_cast<std::size_t>(gains.cols));
  std::iota(columns.begin(), columns.end(), 0);
  double best = -1e9;
  do {
    const std::vector<std::int64_t> first(columns.begin(), columns.begin() + gains.rows);
    best = std::max(best, sum_of(gains, first));
  } while (std::ranges::next_permutation(columns).found);
  return best;
}

}  // namespace

TEST_CASE("an assignment has the largest sum of gains", "[compare]") {
  for (const auto& [rows, cols] : {std::pair(1, 1), {1, 5}, {3, 3}, {4, 6}, {6, 6}, {5, 7}})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(rows, cols, seed);
      const DoubleMatrix gains = random_gains(rows, cols, seed);
      const std::vector<std::int64_t> columns = assign(gains);
      CHECK(std::set(columns.begin(), columns.end()).size() == columns.size());
      CHECK_THAT(sum_of(gains, columns), WithinAbs(best_sum(gains), 1e-9));
      // With more rows than columns, the same pairs.
      CHECK_THAT(sum_of(transposed(gains), assign(transposed(gains))), WithinAbs(best_sum(gains), 1e-9));
    }
}

TEST_CASE("rows without a column have -1", "[compare]") {
  DoubleMatrix gains(3, 1);
  gains.values = {0.2, 0.9, 0.5};
  CHECK(assign(gains) == std::vector<std::int64_t>{-1, 0, -1});
  CHECK(assign(DoubleMatrix(2, 0)) == std::vector<std::int64_t>{-1, -1});
  CHECK(assign(DoubleMatrix(0, 2)).empty());
}
