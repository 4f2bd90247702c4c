#include "thimble/train/bounded_mean.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <utility>

#include "engine/core/portable_math.h"
#include "thimble/engine/error.h"

namespace thimble {

namespace {

constexpr double kTail = 0.025;

// Equal terms a of a sum with exponential weights, whose weights add up to a Gamma variable.
struct Term {
  double a, count;
};

// The distribution of a sum of terms with weights, near 0. Its moment generating function is
// exp K(s), K(s) = -sum count ln(1 - s a), finite where 1 - s a > 0 for every a.
class WeightedSum {
 public:
  explicit WeightedSum(std::vector<Term> terms) : terms_(std::move(terms)) {
    std::erase_if(terms_, [](const Term& term) { return term.a == 0; });
  }

  // Returns P(sum <= 0) = 1 - 1 / (2 pi i) integral of exp(K(z)) / z along a vertical line at s > 0, minus it at s < 0.
  double not_positive() {
    if (terms_.empty()) return 0.5;
    const auto [least, most] = std::ranges::minmax(terms_, {}, &Term::a);
    if (least.a > 0) return 0;
    if (most.a < 0) return 1;
    choose_line(1 / least.a, 1 / most.a);
    double log = 0;
    for (Term& term : terms_) {
      log -= term.count * portable::log(1 - s_ * term.a);
      term.a /= (1 - s_ * term.a) * spread_;  // of the integrand, in units of the spread
    }
    const double integral = (log < -700 ? 0 : portable::exp(log)) * along_line() / std::numbers::pi;
    return std::clamp(s_ < 0 ? -integral : 1 - integral, 0.0, 1.0);
  }

 private:
  // Sets s to the saddle point, where the integrand falls fastest, but not to the pole at 0.
  void choose_line(double low, double high) {
    double below = low, above = high;
    double step = 1;
    for (int i = 0; i < 200 && (i == 0 || std::abs(step) * spread_ > 1e-3); ++i) {
      const double slope = measure_slope();
      (slope > 0 ? above : below) = s_;
      const double before = s_, next = s_ - slope / (spread_ * spread_);
      s_ = next >= below && next <= above ? next : (below + above) / 2;
      step = s_ - before;
    }
    constexpr double kAway = 0.5;
    if (std::abs(s_) * spread_ < kAway) {
      const double away = std::copysign(kAway / spread_, s_ > 0 ? 1 : -1);
      s_ = away > low && away < high ? away : (away < 0 ? low : high) / 2;
    }
    measure_slope();
  }

  // Returns K'(s), and sets the spread, the root of K''(s).
  double measure_slope() {
    double slope = 0, squares = 0;
    for (const Term& term : terms_) {
      const double x = term.a / (1 - s_ * term.a);
      slope += term.count * x;
      squares += term.count * x * x;
    }
    spread_ = std::sqrt(squares);
    return slope;
  }

  // Returns the integral over the upper half of the line, by the trapezoidal rule in u, y = sinh u, whose nodes are doubled
  // until nothing changes.
  double along_line() const {
    double width = 0.5, sum = integrand(0).real() / 2 + nodes(width, width);
    for (double value = width * sum, before = 2; std::abs(value - before) > 1e-9 && width > 1e-4;) {
      sum += nodes(width / 2, width);
      width /= 2;
      before = std::exchange(value, width * sum);
    }
    return width * sum;
  }

  // Returns the sum of the real parts of the integrand at first, first + width, ...
  double nodes(double first, double width) const {
    double sum = 0;
    for (double u = first; u < 60; u += width) {
      const std::complex<double> value = integrand(u);
      sum += value.real();
      if (std::norm(value) < 1e-28) break;
    }
    return sum;
  }

  // Returns cosh u / ((s + i y) product of (1 - i y a)^count), in units of the spread; 0 where it is below 1e-30.
  std::complex<double> integrand(double u) const {
    const double e = portable::exp(u), y = (e - 1 / e) / 2;
    double re = 1, im = 0;  // of the product
    for (const Term& term : terms_) {
      double x = 1, z = -y * term.a;  // a power of 1 - i y a
      for (auto n = static_cast<std::int64_t>(term.count);; n >>= 1) {
        if ((n & 1) != 0) mul(re, im, x, z);
        if (n == 1) break;
        mul(x, z, x, z);
        if (x * x + z * z > 1e100) return 0;
      }
      if (re * re + im * im > 1e60) return 0;
    }
    return (e + 1 / e) / 2 / (std::complex(s_ * spread_, y) * std::complex(re, im));
  }

  // Multiplies a complex number by another.
  static void mul(double& re, double& im, double x, double z) {
    const double product = re * x - im * z;
    im = re * z + im * x;
    re = product;
  }

  std::vector<Term> terms_;
  double s_ = 0, spread_ = 0;
};

}  // namespace

BoundedMean::BoundedMean(std::span<const double> changes, std::span<const double> labels, double most,
                         Interval bounds)
    : most_(most), bounds_(bounds) {
  require<ShapeError>(changes.size() == labels.size(), "bounded mean: {} changes for {} sequences",
                      changes.size(), labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i)
    groups_.push_back(
        {std::clamp(changes[i], bounds.low * labels[i], bounds.high * labels[i]), labels[i], 1});
  const auto key = [](const Group& group) { return std::pair(group.change, group.labels); };
  std::ranges::sort(groups_, {}, key);
  std::vector<Group> different;
  for (const Group& group : groups_) {
    sum_ += group.change;
    labels_ += group.labels;
    if (different.empty() || key(different.back()) != key(group))
      different.push_back(group);
    else
      ++different.back().count;
  }
  groups_ = std::move(different);
}

double BoundedMean::mean() const {
  return is_known() ? sum_ / labels_ : std::numeric_limits<double>::quiet_NaN();
}

double BoundedMean::f(double bound, double t) const {
  std::vector<Term> terms{{most_ * (bound - t), 1}};
  for (const Group& group : groups_) terms.push_back({group.change - t * group.labels, group.count});
  return WeightedSum(std::move(terms)).not_positive();
}

// Returns t with F(bound, t) = share, which F rises to, by the Illinois method on the logit of F.
double BoundedMean::end(double bound, double share) const {
  const auto above = [&](double t) {
    const double p = std::clamp(f(bound, t), 1e-15, 1 - 1e-15);
    return portable::log(p / (1 - p)) - portable::log(share / (1 - share));
  };
  double low = bounds_.low, high = bounds_.high, at_low = above(low), at_high = above(high);
  if (at_low >= 0) return low;
  if (at_high <= 0) return high;
  double squares = 0;
  for (const Group& group : groups_)
    squares += group.count * (group.change - mean() * group.labels) * (group.change - mean() * group.labels);
  const double error = std::sqrt(squares + most_ * most_) / labels_;
  double t = std::clamp(mean() + (share < 0.5 ? -2 : 2) * error, (3 * low + high) / 4, (low + 3 * high) / 4);
  for (int side = 0; high - low > 1e-10 * (bounds_.high - bounds_.low);) {
    const double at = above(t);
    if (std::abs(at) < 1e-9) break;
    const int now = at < 0 ? -1 : 1;
    (now < 0 ? low : high) = t;
    (now < 0 ? at_low : at_high) = at;
    if (now == side) (now < 0 ? at_high : at_low) /= 2;
    side = now;
    t = (low * at_high - high * at_low) / (at_high - at_low);
  }
  return t;
}

Interval BoundedMean::interval() const {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (!is_known()) return {kUnknown, kUnknown};
  return {end(bounds_.low, kTail), end(bounds_.high, 1 - kTail)};
}

bool BoundedMean::is_above(double t) const {
  return is_known() && t < bounds_.high && (t < bounds_.low || f(bounds_.low, t) < kTail);
}

bool BoundedMean::is_below(double t) const {
  return is_known() && t > bounds_.low && (t > bounds_.high || f(bounds_.high, t) > 1 - kTail);
}

double BoundedMean::p(double t) const {
  if (!is_known()) return 1;
  const double below = (f(bounds_.low, t) + f(bounds_.high, t)) / 2;
  return 2 * std::min(below, 1 - below);
}

}  // namespace thimble
