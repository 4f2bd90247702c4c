// Statistics of a few numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace thimble {

struct Spread {
  std::int64_t count = 0;
  double mean, min, median, max;  // NaN without numbers
  std::optional<double> sd{};     // of a sample: squares are divided by count - 1; none for one number
};

// Leaves out NaN. The median of an even count is the mean of the middle two.
Spread spread(std::vector<double> numbers);

// Returns the value below which that share of the sorted numbers lies, between the two nearest; n >= 1.
double quantile(const std::vector<double>& sorted, double share);

}  // namespace thimble
