#include "engine/autograd/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

using enum GradcheckVerdict;

constexpr std::int64_t kSmall = 256, kSample = 64, kDirections = 16;
constexpr double kEpsilon = std::numeric_limits<Real>::epsilon();
constexpr double kLength = 16;      // of a direction, at most
constexpr double kTooSmall = 1e-6;  // of the loss: gradients that its rounding hides
constexpr double kSmallest = 1e-2;  // of the largest: smaller gradients are compared with it

// Returns the largest power of two that is at most max(1, |x|): adding its fractions to x loses few bits.
double unit_of(double x) { return std::ldexp(1.0, std::ilogb(std::max(1.0, std::abs(x)))); }

double largest_of(std::span<const Real> values) {
  double largest = 0;
  for (const Real v : values) largest = std::max(largest, std::abs(static_cast<double>(v)));
  return largest;
}

std::string index_name(const Shape& shape, std::int64_t flat) {
  std::string text;
  for (int d = shape.rank(); d-- > 0;) {
    text = fmt::format("{}{}{}", flat % shape[d], text.empty() ? "" : ", ", text);
    flat /= shape[d];
  }
  return "[" + text + "]";
}

}  // namespace

Comparison::Comparison(std::function<double()> loss, std::vector<ComparedTensor> tensors,
                       const Random& random)
    : loss_(std::move(loss)), tensors_(std::move(tensors)), random_(random) {
  center_ = this->loss();
  measure_rounding();
}

std::int64_t Comparison::planned(std::int64_t elements) {
  return elements <= kSmall ? elements : kSample + kDirections;
}

double Comparison::loss() {
  signs_.rewind();
  return loss_();
}

// Second differences of steps near 1e-13 are rounding and nothing else, six times its variance. A value is rounded once
// at least.
void Comparison::measure_rounding() {
  constexpr std::uint32_t kDraws = 8;
  double sum = 0;
  for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
    double second = -2 * center_;
    std::vector<std::vector<Real>> kept;
    for (const ComparedTensor& tensor : tensors_)
      kept.emplace_back(tensor.values.begin(), tensor.values.end());
    for (const double side : {1.0, -1.0}) {
      std::uint64_t number = 0;
      for (std::size_t k = 0; k < tensors_.size(); ++k) {
        for (std::size_t i = 0; i < kept[k].size(); ++i) {
          const auto x = static_cast<double>(kept[k][i]);
          const double sign = random_.below(2, number++, draw, 5) == 0 ? side : -side;
          tensors_[k].values[i] = static_cast<Real>(x + sign * std::ldexp(unit_of(x), -44));
        }
      }
      second += loss();
    }
    for (std::size_t k = 0; k < tensors_.size(); ++k) std::ranges::copy(kept[k], tensors_[k].values.begin());
    sum += second * second;
  }
  rounding_ = std::max(kEpsilon * std::abs(center_), std::sqrt(sum / (6 * kDraws)));
}

GradcheckResult Comparison::compare(std::size_t k, const std::function<void()>& advance) {
  const ComparedTensor& tensor = tensors_[k];
  const std::int64_t n = std::ssize(tensor.values);
  GradcheckResult result;
  result.verdict = ok;
  if (!std::isfinite(center_)) {
    result.verdict = undecided;
    result.worst_error = result.analytic = result.numeric = result.error = std::nan("");
    result.reason = "the loss is not finite: values at which it is would help";
    return result;
  }
  const auto lane = static_cast<std::uint32_t>(k);
  for (std::int64_t i = 0; i < (n <= kSmall ? n : kSample); ++i) {
    const auto draw = [&] {
      return random_.below(static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(i), lane, 3);
    };
    compare_element(k, n <= kSmall ? i : static_cast<std::int64_t>(draw()), result);
    advance();
  }
  // What single elements leave open is decided by directions, all of which must be right.
  if (result.verdict == undecided || (result.verdict == ok && n > kSmall)) {
    GradcheckResult directions;
    directions.verdict = ok;
    for (std::uint32_t number = 0; number < kDirections; ++number) {
      compare_direction(k, number, directions);
      if (n > kSmall) advance();
    }
    if (result.verdict == undecided || directions.verdict != ok ||
        directions.worst_error > result.worst_error)
      result = directions;
  }
  explain(tensor, result);
  return result;
}

void Comparison::compare_element(std::size_t k, std::int64_t at, GradcheckResult& result) {
  const ComparedTensor& tensor = tensors_[k];
  Real& x = tensor.values[static_cast<std::size_t>(at)];
  const auto center = static_cast<double>(x);
  const auto analytic = static_cast<double>(tensor.gradient[static_cast<std::size_t>(at)]);
  const double unit = unit_of(center), largest = tensor.zero_gradient ? 1 : largest_of(tensor.gradient);
  const auto along = [&](double t) {
    x = static_cast<Real>(center + t);
    const double value = loss();
    x = static_cast<Real>(center);
    return value;
  };
  const double rounding = rounding_ + kEpsilon * unit * std::abs(analytic);
  decide_along({along, center_, rounding, unit}, analytic, std::max(std::abs(analytic), kSmallest * largest),
               64 * kEpsilon * largest, index_name(tensor.shape, at), result);
}

// Moves every element up or down, by a unit each in tensors of at most 256.
void Comparison::compare_direction(std::size_t k, std::uint32_t number, GradcheckResult& result) {
  const ComparedTensor& tensor = tensors_[k];
  const std::size_t n = tensor.values.size();
  const double each = std::min(1.0, kLength / std::sqrt(static_cast<double>(n)));
  const std::vector<Real> center(tensor.values.begin(), tensor.values.end());
  std::vector<double> direction(n);
  double analytic = 0, squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double sign = random_.below(2, i, static_cast<std::uint32_t>(k), 16 + number) == 0 ? 1 : -1;
    direction[i] = sign * each * unit_of(static_cast<double>(center[i]));
    const double product = static_cast<double>(tensor.gradient[i]) * direction[i];
    analytic += product;
    squares += product * product;
  }
  const double norm = tensor.zero_gradient ? 1 : std::sqrt(squares);
  const auto along = [&](double t) {
    for (std::size_t i = 0; i < n; ++i)
      tensor.values[i] = static_cast<Real>(static_cast<double>(center[i]) + t * direction[i]);
    const double value = loss();
    std::ranges::copy(center, tensor.values.begin());
    return value;
  };
  const double rounding = rounding_ + kEpsilon * norm;
  decide_along({along, center_, rounding, 1}, analytic, std::max(std::abs(analytic), kSmallest * norm),
               64 * kEpsilon * norm, fmt::format("direction {}", number), result);
}

// Decides one comparison and keeps it if it is the worst: a wrong one before one that is open, then the one of the
// largest relative error. Tableaux are made where they could change the result.
void Comparison::decide_along(const Line& line, double analytic, double size, double least,
                              const std::string& index, GradcheckResult& result) {
  const auto relative = [&](const Derivative& numeric) {
    const double error = analytic == numeric.value ? 0 : std::abs(analytic - numeric.value) / size;
    return std::isfinite(error) ? error : HUGE_VAL;
  };
  const auto thorough = [&](const Derivative& first) {
    if (result.verdict == wrong) return relative(first) > result.worst_error;
    return result.verdict == ok || !(std::abs(analytic - first.value) <= first.error);
  };
  const Decision decision = std::isfinite(analytic) ? decide(line, analytic, size, least, thorough)
                                                    : Decision{wrong, differentiate(line, 0x1p-12, 2)};
  const double error = relative(decision.numeric);
  const auto rank = [](GradcheckVerdict v) { return v == wrong ? 2 : v == undecided ? 1 : 0; };
  const bool worse = rank(decision.verdict) != rank(result.verdict)
                         ? rank(decision.verdict) > rank(result.verdict)
                         : error >= result.worst_error;
  if (!worse) return;
  result.verdict = decision.verdict;
  result.worst_error = error;
  result.analytic = analytic;
  result.numeric = decision.numeric.value;
  result.error = decision.numeric.error;
  result.index = index;
}

void Comparison::explain(const ComparedTensor& tensor, GradcheckResult& result) const {
  const double largest = largest_of(tensor.gradient);
  if (tensor.zero_gradient && largest > 1e-9) {
    result.verdict = wrong;
    result.reason = fmt::format("a gradient of {:.3g} where it is zero by construction", largest);
  } else if (result.verdict == wrong) {
    result.reason = fmt::format("the gradient is {:.6g}, numerically {:.6g}, whose error is at most {:.1g}",
                                result.analytic, result.numeric, result.error);
  } else if (result.verdict == undecided && largest == 0) {
    result.reason =
        "the gradient is 0, and so are differences: another seed would help if the input has an effect there";
  } else if (result.verdict == undecided && largest <= kTooSmall * std::abs(center_)) {
    result.reason = fmt::format(
        "gradients of at most {:.2g} are too small beside an error of {:.1g} of differences of a loss of {:.3g}: larger weights would help",
        largest, result.error, center_);
  } else if (result.verdict == undecided) {
    result.reason = fmt::format(
        "differences of different steps do not agree, {:.6g} with an error of {:.1g}: another seed would help if the loss has a kink or a jump here",
        result.numeric, result.error);
  }
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
