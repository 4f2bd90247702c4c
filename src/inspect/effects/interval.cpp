#include "thimble/inspect/interval.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/core/portable_math.h"
#include "thimble/engine/error.h"

namespace thimble {

namespace {

constexpr double kNormal975 = 1.959963984540054;  // quantile of the normal distribution

// D. L. Wallace, "Bounds on normal approximations to Student's and the chi-square distributions", Annals of
// Mathematical Statistics 30, 1959: t with n degrees of freedom is about as likely as the normal number
// (8n + 1) / (8n + 3) sqrt(n ln(1 + t²/n)), with an error below 0.002 for n >= 4.
double t_from_normal(double z, double n) {
  const double u = z * (8 * n + 3) / (8 * n + 1);
  return std::copysign(std::sqrt(n * portable::expm1(u * u / n)), z);
}

// The inverse of Hall's transformation: with a = skewness / sqrt(N), g(t) = t + a t²/3 + a² t³/27 + a/6.
double with_skewness(double g, double a) {
  constexpr double kLinear = 1e-6;  // the next term of the inverse is below a x²
  const double x = g - a / 6;
  return std::abs(a) < kLinear ? x : 3 / a * (portable::cbrt(1 + a * x) - 1);
}

}  // namespace

MeanChange mean_change(std::span<const double> changes, std::span<const double> labels) {
  const std::size_t count = labels.size();
  require<ShapeError>(count > 0, "confidence interval: 0 sequences; at least 1 is needed");
  require<ShapeError>(changes.size() == count, "confidence interval: {} changes for {} sequences",
                      changes.size(), count);
  const auto n = static_cast<double>(count);
  const double all = std::max(1.0, std::accumulate(labels.begin(), labels.end(), 0.0));
  MeanChange out;
  out.mean = std::accumulate(changes.begin(), changes.end(), 0.0) / all;
  if (count < 2) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    out.interval = {kUnknown, kUnknown};
    return out;
  }
  // The ratio of sums is, to first order, the mean of these influences plus the true ratio.
  double squares = 0, cubes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double influence = (changes[i] - out.mean * labels[i]) * n / all;
    squares += influence * influence;
    cubes += influence * influence * influence;
  }
  const double deviation = std::sqrt(squares / (n - 1)), error = deviation / std::sqrt(n);
  if (!(error > 0)) {
    out.interval = {out.mean, out.mean};
    return out;
  }
  const double degrees = n - 1, quantile = t_from_normal(kNormal975, degrees);
  const double third = cubes / (deviation * deviation * deviation);
  const double a = (count > 2 ? third * n / ((n - 1) * (n - 2)) : 0) / std::sqrt(n);
  out.interval = {out.mean - error * with_skewness(quantile, a),
                  out.mean - error * with_skewness(-quantile, a)};
  return out;
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p[i]; });
  std::vector<double> corrected(p.size());
  double largest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    largest = std::max(largest, p[order[rank]] * static_cast<double>(p.size() - rank));
    corrected[order[rank]] = std::min(1.0, largest);
  }
  return corrected;
}

Json to_json(const Interval& interval) {
  const auto end = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
  return {end(interval.low), end(interval.high)};
}

}  // namespace thimble
