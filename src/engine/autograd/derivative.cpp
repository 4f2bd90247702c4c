#include "engine/autograd/derivative.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace thimble {

namespace {

constexpr std::size_t kRows = 5;
constexpr double kTolerance = 1e-5, kContradiction = 10, kSigmas = 3;

using Row = std::array<double, kRows>;

// Returns the cell of the least error of the tableau of estimates with steps h, h / 2, .... The error of an estimate
// has the powers of h whose first is 2^h = `factor`, and each second one after it; rounding adds `rounding` to the first
// estimate, and twice as much to each later one.
Derivative extrapolate(std::span<const double> estimates, double factor, double rounding) {
  Derivative best;
  std::array<double, kRows> above{};
  std::array<Row, kRows> weights_above{};  // of the estimates, in each cell of the row above
  for (std::size_t i = 0; i < estimates.size(); ++i) {
    Row cell{estimates[i]};
    std::array<Row, kRows> weights{};
    weights[0][i] = 1;
    double times = factor;
    for (std::size_t j = 1; j <= i; ++j, times *= 4) {
      cell[j] = (times * cell[j - 1] - above[j - 1]) / (times - 1);
      double variance = 0;
      for (std::size_t k = 0; k <= i; ++k) {
        weights[j][k] = (times * weights[j - 1][k] - weights_above[j - 1][k]) / (times - 1);
        variance += std::pow(std::ldexp(weights[j][k], static_cast<int>(k)), 2);
      }
      double error = std::abs(cell[j] - cell[j - 1]);
      if (estimates.size() > 2) error = std::max(error, std::abs(cell[j] - above[j - 1]));
      error += kSigmas * rounding * std::sqrt(variance);
      if (error < best.error) best = {cell[j], error};
    }
    above = cell;
    weights_above = weights;
  }
  return best;
}

bool contradicts(const Derivative& numeric, double analytic) {
  return !(std::abs(analytic - numeric.value) <= kContradiction * numeric.error);
}

// Returns whether differences of steps below h stay with `numeric`, which contradicts `analytic`, down to steps at which
// rounding could hide the gap: a function that bends on a small scale has other slopes on larger ones.
bool confirmed(const Line& line, double h, const Derivative& numeric, double analytic) {
  const double gap = std::abs(analytic - numeric.value);
  const double step = std::max(std::abs(analytic), std::abs(numeric.value)) * line.unit;
  const Line noise{[](double) { return 0.0; }, 0,
                   line.rounding + std::numeric_limits<double>::epsilon() * step, line.unit};
  for (double s = h / 16; kContradiction * differentiate(noise, s, 2).error < gap; s /= 16)
    if (!(kContradiction * std::abs(differentiate(line, s, 2).value - numeric.value) <= 2 * gap))
      return false;
  return true;
}

}  // namespace

Derivative differentiate(const Line& line, double h, int rows) {
  Row slopes{}, jumps{};
  const auto count = static_cast<std::size_t>(rows);
  const double first = h * line.unit;
  double step = first;
  for (std::size_t i = 0; i < count; ++i, step /= 2) {
    const double up = line.f(step), down = line.f(-step);
    slopes[i] = (up - down) / (2 * step);
    jumps[i] = ((up - line.center) - (line.center - down)) / step;
  }
  Derivative slope = extrapolate({slopes.data(), count}, 4, line.rounding / (std::sqrt(2.0) * first));
  const Derivative jump = extrapolate({jumps.data(), count}, 2, std::sqrt(6.0) * line.rounding / first);
  slope.error += std::max(0.0, std::abs(jump.value) - jump.error);
  return slope;
}

Decision decide(const Line& line, double analytic, double size, double least,
                const std::function<bool(const Derivative&)>& thorough) {
  const auto estimate = [&](double h, int rows) {
    Derivative numeric = differentiate(line, h, rows);
    numeric.error += least;
    return numeric;
  };
  const auto shown = [&](const Derivative& numeric) {
    return size > 0 && !contradicts(numeric, analytic) &&
           std::abs(analytic - numeric.value) + numeric.error <= kTolerance * size;
  };
  Derivative best = estimate(0x1p-12, 2);
  if (std::abs(analytic - best.value) <= best.error && shown(best)) return {GradcheckVerdict::ok, best};
  if (!thorough(best)) return {GradcheckVerdict::undecided, best};
  // Steps down to where rounding alone is too much.
  for (double h = 0x1p-8; h >= 0x1p-24; h /= 16) {
    const Derivative one = estimate(h, kRows);
    if (shown(one)) return {GradcheckVerdict::ok, one};
    const Derivative other = estimate(0.75 * h, kRows);
    if (shown(other)) return {GradcheckVerdict::ok, other};
    const Derivative& better = one.error <= other.error ? one : other;
    if (std::abs(one.value - other.value) <= one.error + other.error && contradicts(one, analytic) &&
        contradicts(other, analytic) && confirmed(line, h, better, analytic))
      return {GradcheckVerdict::wrong, better};
    if (better.error < best.error) best = better;
    if (kSigmas * line.rounding > kTolerance * size * h / 16 * line.unit) break;
  }
  return {GradcheckVerdict::undecided, best};
}

}  // namespace thimble
