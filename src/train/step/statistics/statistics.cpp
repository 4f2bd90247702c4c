#include "thimble/train/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace thimble {

Spread spread(std::vector<double> numbers) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::erase_if(numbers, [](double x) { return std::isnan(x); });
  Spread out{.count = std::ssize(numbers), .mean = kNone, .min = kNone, .median = kNone, .max = kNone};
  if (numbers.empty()) return out;
  const auto n = static_cast<double>(numbers.size());
  out.mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / n;
  double squares = 0;
  for (const double x : numbers) squares += (x - out.mean) * (x - out.mean);
  if (out.count > 1) out.sd = std::sqrt(squares / (n - 1));
  std::ranges::sort(numbers);
  const std::size_t half = numbers.size() / 2;
  out.min = numbers.front();
  out.median = numbers.size() % 2 == 1 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
  out.max = numbers.back();
  return out;
}

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

}  // namespace thimble
