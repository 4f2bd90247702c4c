// Descriptive statistics.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace thimble {

// The distribution of a sample.
struct Spread {
  std::int64_t count = 0;
  double mean, min, median, max;  // NaN without numbers
  std::optional<double> sd{};     // of the sample: divides by count - 1; none for one number
};

// Returns the statistics of the numbers without NaN. The median of an even count is the mean of the middle
// two.
Spread spread(std::vector<double> numbers);

// Returns the quantile of the sorted numbers, of which there is at least one, interpolated linearly; 0 <=
// share <= 1.
double quantile(const std::vector<double>& sorted, double share);

}  // namespace thimble
