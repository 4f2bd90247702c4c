#include "thimble/autograd/gradcheck.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "thimble/core/progress.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

constexpr double kVacuous = 1e-4;  // a check whose largest gradient is below this is vacuous

std::string index_name(const Shape& shape, std::int64_t flat) {
  std::string text;
  for (int d = shape.rank(); d-- > 0;) {
    text = fmt::format("{}{}{}", flat % shape[d], text.empty() ? "" : ", ", text);
    flat /= shape[d];
  }
  return "[" + text + "]";
}

double error_of(double analytic, double numeric, double floor) {
  const double error =
      std::abs(analytic - numeric) / std::max({std::abs(analytic), std::abs(numeric), floor});
  return std::isfinite(error) ? error : HUGE_VAL;
}

// Compares one derivative and stores it if its error is the largest so far. central(h) is the central
// difference of step h. Where that of 1e-5 disagrees, tries extrapolated ones (Richardson), which lose less
// to rounding, and smaller steps, which avoid kinks. None of them agrees with a wrong gradient.
template <class Central>
void compare(GradcheckResult& result, double analytic, double largest, const Central& central,
             const std::string& index) {
  const double floor = std::max(1e-3 * largest, 1e-12);
  const auto extrapolated = [&](double h) { return (4 * central(h / 2) - central(h)) / 3; };
  const auto extrapolated_twice = [&](double h) { return (16 * extrapolated(h / 2) - extrapolated(h)) / 15; };
  double best = central(1e-5);
  const auto try_another = [&](auto&& difference, double h) {
    if (error_of(analytic, best, floor) <= kGradcheckTolerance) return;
    const double other = difference(h);
    if (error_of(analytic, other, floor) < error_of(analytic, best, floor)) best = other;
  };
  try_another(extrapolated, 2e-3);
  try_another(extrapolated, 2e-4);
  try_another(extrapolated, 2e-5);
  try_another(extrapolated_twice, 2e-2);
  try_another(central, 1e-6);
  try_another(central, 1e-7);
  const double error = error_of(analytic, best, floor);
  if (error >= result.worst_error) {
    result.worst_error = error;
    result.analytic = analytic;
    result.numeric = best;
    result.index = index;
  }
}

void fail(GradcheckResult& result, const std::string& why) {
  if (!result.failure.empty()) return;
  result.passed = false;
  result.failure = why;
}

void judge(GradcheckResult& result, double largest, bool zero_expected) {
  if (zero_expected) {
    if (largest > 1e-9)
      fail(result, fmt::format("a gradient of {:.3g} where it is zero by construction", largest));
    result.worst_error = 0;
  } else if (!(largest >= kVacuous)) {
    fail(result, fmt::format("vacuous: the largest gradient is {:.3g}", largest));
  }
  if (result.worst_error > kGradcheckTolerance) {
    fail(result, fmt::format("error {:.3g} is above {:g}", result.worst_error, kGradcheckTolerance));
  }
}

double largest_of(std::span<const Real> values) {
  double largest = 0;
  for (const Real v : values) {
    largest = std::isfinite(v) ? std::max(largest, std::abs(static_cast<double>(v))) : HUGE_VAL;
  }
  return largest;
}

// Evaluations of f, of its loss and of the gradients of its inputs.
class OpCheck {
 public:
  OpCheck(const GradcheckFunction& f, std::span<const GradcheckInput> inputs, std::uint64_t seed)
      : f_(f), random_(seed, Stream::gradcheck) {
    for (const GradcheckInput& input : inputs) values_.push_back(input.value);
  }

  double loss() {
    const Var y = run();
    double sum = 0;
    const Real* values = y.value().data;
    for (std::int64_t i = 0; i < y.shape().elements(); ++i)
      sum += static_cast<double>(values[i]) * cotangent(i);
    return sum;
  }

  // Returns the analytic gradient of every input, and sets `fault` where an input was changed or a gradient
  // overwritten.
  std::vector<Tensor> gradients(std::vector<std::string>& fault) {
    const Var y = run();
    std::vector<Tensor> start, once;
    for (std::size_t k = 0; k < vars_.size(); ++k) {
      const MatrixView grad = vars_[k].grad();
      for (std::int64_t i = 0; i < grad.elements(); ++i) {
        grad.data[i] = static_cast<Real>(
            random_.normal(static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(k), 2));
      }
      start.push_back(copy(vars_[k], grad));
    }
    tape_.backward(y, cotangents(y).matrix(), Tape::RetainGrads::leaves);
    for (std::size_t k = 0; k < vars_.size(); ++k) once.push_back(copy(vars_[k], vars_[k].grad()));
    fault.assign(vars_.size(), "");
    for (std::size_t k = 0; k < vars_.size(); ++k) {
      for (std::size_t i = 0; i < once[k].values().size(); ++i) once[k].values()[i] -= start[k].values()[i];
      if (std::memcmp(vars_[k].value().data, values_[k].data(), values_[k].values().size_bytes()) != 0) {
        fault[k] = "the op changed its input";
      }
    }
    check_second_run(once, start, fault);
    return once;
  }

  Tensor& value(std::size_t k) { return values_[k]; }

 private:
  Var run() {
    tape_.rewind();
    vars_.clear();
    for (const Tensor& value : values_) vars_.push_back(tape_.variable(value));
    return f_(tape_, vars_);
  }

  // Runs backward again from gradients that start at zero, which must give the same.
  void check_second_run(const std::vector<Tensor>& once, const std::vector<Tensor>& start,
                        std::vector<std::string>& fault) {
    const Var y = run();
    tape_.backward(y, cotangents(y).matrix(), Tape::RetainGrads::leaves);
    for (std::size_t k = 0; k < vars_.size(); ++k) {
      const Real* zero_started = vars_[k].grad().data;
      for (std::size_t i = 0; i < once[k].values().size(); ++i) {
        const double size = std::max({1.0, std::abs(static_cast<double>(zero_started[i])),
                                      std::abs(static_cast<double>(start[k].values()[i]))});
        const double gap =
            std::abs(static_cast<double>(once[k].values()[i]) - static_cast<double>(zero_started[i]));
        if (!(gap <= 1e-9 * size) && fault[k].empty())
          fault[k] = "backward overwrites the gradient instead of adding to it";
      }
    }
  }

  static Tensor copy(Var v, MatrixView grad) {
    return Tensor(v.shape(), std::span<const Real>(grad.data, static_cast<std::size_t>(grad.elements())));
  }

  double cotangent(std::int64_t i) const {
    return 2 * random_.uniform(static_cast<std::uint64_t>(i), 0, 1) - 1;
  }

  Tensor cotangents(Var y) const {
    Tensor all(y.shape());
    for (std::int64_t i = 0; i < y.shape().elements(); ++i) all.data()[i] = static_cast<Real>(cotangent(i));
    return all;
  }

  const GradcheckFunction& f_;
  Random random_;
  Tape tape_;
  std::vector<Tensor> values_;
  std::vector<Var> vars_;
};

// Tensors of at most kSmall elements are compared at every element, larger ones at kSample random elements
// and along kDirections random directions.
constexpr std::int64_t kSmall = 256, kSample = 64, kDirections = 16;

std::int64_t comparisons(std::int64_t n) { return n <= kSmall ? n : kSample + kDirections; }

double comparisons(const ParameterStore& store) {
  std::int64_t sum = 0;
  for (const auto& entry : store.entries()) sum += comparisons(static_cast<std::int64_t>(entry.size()));
  return static_cast<double>(sum);
}

std::vector<std::int64_t> elements_to_check(std::int64_t n, const Random& random, std::uint32_t lane) {
  std::vector<std::int64_t> elements;
  for (std::int64_t i = 0; i < (n <= kSmall ? n : kSample); ++i) {
    elements.push_back(n <= kSmall
                           ? i
                           : static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n),
                                                                    static_cast<std::uint64_t>(i), lane, 3)));
  }
  return elements;
}

}  // namespace

std::vector<GradcheckResult> gradcheck(const std::string& op, const GradcheckFunction& f,
                                       std::span<const GradcheckInput> inputs, std::uint64_t seed) {
  OpCheck check(f, inputs, seed);
  std::vector<std::string> fault;
  const std::vector<Tensor> gradients = check.gradients(fault);
  std::vector<GradcheckResult> results;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    GradcheckResult result{.op = op, .input = inputs[k].name, .index = {}, .passed = true, .failure = {}};
    const double largest = largest_of(gradients[k].values());
    for (std::size_t i = 0; i < gradients[k].values().size(); ++i) {
      Real& x = check.value(k).values()[i];
      const Real center = x;
      const auto numeric = [&](double step) {
        const Real h = static_cast<Real>(step * std::max(1.0, std::abs(static_cast<double>(center))));
        x = center + h;
        const double above = check.loss(), x_above = static_cast<double>(x);
        x = center - h;
        const double below = check.loss(), x_below = static_cast<double>(x);
        x = center;
        return (above - below) / (x_above - x_below);
      };
      compare(result, static_cast<double>(gradients[k].values()[i]), largest, numeric,
              index_name(inputs[k].value.shape(), static_cast<std::int64_t>(i)));
    }
    if (!fault[k].empty()) fail(result, fault[k]);
    judge(result, largest, inputs[k].zero_gradient);
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<GradcheckResult> gradcheck(ParameterStore& store, const LossFunction& loss, std::uint64_t seed) {
  const Random random(seed, Stream::gradcheck);
  Tape tape;
  AlignedVector<Real> gradients(store.size());
  tape.bind(store, gradients);
  tape.backward(loss(tape), 1, Tape::RetainGrads::leaves);
  std::vector<bool> reached;
  for (int p = 0; p < static_cast<int>(store.entries().size()); ++p) reached.push_back(tape.used({p}));

  Tape forward(Tape::Mode::inference);
  forward.bind(store, {});
  const auto value = [&] {
    forward.rewind();
    return static_cast<double>(loss(forward).item());
  };

  ProgressCounter progress("checking gradients", comparisons(store));
  std::vector<GradcheckResult> results;
  for (int p = 0; p < static_cast<int>(store.entries().size()); ++p) {
    const auto& entry = store.entry({p});
    const std::span<Real> x = store.values(Parameter{p});
    const std::span<const Real> g = store.slice(std::span<const Real>(gradients), {p});
    GradcheckResult result{.op = "model", .input = entry.name, .index = {}, .passed = true, .failure = {}};
    const double largest = largest_of(g);
    if (!reached[static_cast<std::size_t>(p)] || largest == 0)
      fail(result, "the loss never reaches this parameter");
    const std::vector<Real> center(x.begin(), x.end());

    // Returns the central difference along a direction.
    const auto along = [&](auto&& direction, double step) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = center[i] + static_cast<Real>(step * direction(i));
      const double above = value();
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = center[i] - static_cast<Real>(step * direction(i));
      const double below = value();
      std::ranges::copy(center, x.begin());
      return (above - below) / (2 * step);
    };
    for (const std::int64_t at :
         elements_to_check(static_cast<std::int64_t>(x.size()), random, static_cast<std::uint32_t>(p))) {
      const auto e = static_cast<std::size_t>(at);
      compare(
          result, static_cast<double>(g[e]), largest,
          [&](double h) { return along([e](std::size_t i) { return i == e ? 1.0 : 0.0; }, h); },
          index_name(entry.shape, at));
      progress.advance();
    }
    for (std::int64_t k = 0; k < (std::ssize(x) > kSmall ? kDirections : 0); ++k) {
      const double unit = 1 / std::sqrt(static_cast<double>(x.size()));
      const auto direction = [&](std::size_t i) {
        return unit * random.normal(i, static_cast<std::uint32_t>(p), 4 + static_cast<std::uint32_t>(k));
      };
      double analytic = 0;
      for (std::size_t i = 0; i < x.size(); ++i) analytic += static_cast<double>(g[i]) * direction(i);
      compare(
          result, analytic, largest, [&](double h) { return along(direction, h); },
          fmt::format("direction {}", k));
      progress.advance();
    }
    judge(result, largest, false);
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
