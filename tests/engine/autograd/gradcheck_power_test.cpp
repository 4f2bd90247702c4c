// The power of the gradient check: errors planted in the backward pass of every op are found.
#include "thimble/engine/gradcheck.h"

#ifdef THIMBLE_DOUBLE

#include <algorithm>
#include <cmath>
#include <map>

#include "catch.h"
#include "engine/ops/gradcheck_cases.h"

using namespace thimble;
using enum GradcheckVerdict;

namespace {

enum class Plant { nothing, sign, factor, transposed, one_row, one_element, missing_term, stale };

// An error in the gradients of an op, and the gradients of its inputs with it.
struct Planted {
  Plant plant = Plant::nothing;
  Real relative = 0;  // of a factor or an element
  std::vector<std::vector<Real>> gradients = {};
};

// Returns element i of the gradient that an error makes of dy.
Real corrupted(Plant plant, Real relative, ConstMatrixView dy, std::int64_t i) {
  const std::int64_t rows = dy.rows, cols = dy.cols;
  switch (plant) {
    case Plant::sign:
      return -dy.data[i];
    case Plant::factor:
      return (1 + relative) * dy.data[i];
    case Plant::transposed:
      return dy.data[i % cols * rows + i / cols];
    case Plant::one_row:
      return i / cols == rows / 2 ? 0 : dy.data[i];
    case Plant::one_element:
      return (i == rows * cols - 1 ? 1 + relative : 1) * dy.data[i];
    default:
      return dy.data[i];
  }
}

// Returns x, with an error in its gradient, which is kept in `gradient`.
Var with_gradient(Var x, const Planted& error, std::vector<Real>& gradient) {
  return record(
      "planted", x.shape(), {x},
      [x](Var y) { std::copy_n(x.value().data, x.value().elements(), y.value().data); },
      [x, plant = error.plant, relative = error.relative, kept = &gradient](Var y) {
        kept->clear();
        for (std::int64_t i = 0; i < y.grad().elements(); ++i)
          x.grad().data[i] += kept->emplace_back(corrupted(plant, relative, y.grad(), i));
      });
}

// Returns y, without the gradient of its first element.
Var without_term(Var y) {
  return record(
      "planted", y.shape(), {y},
      [y](Var z) { std::copy_n(y.value().data, y.value().elements(), z.value().data); },
      [y](Var z) {
        for (std::int64_t i = 1; i < z.grad().elements(); ++i) y.grad().data[i] += z.grad().data[i];
      });
}

// Returns x with other values, which are saved in place of those of x.
Var stale(Var x) {
  return record(
      "planted", x.shape(), {x},
      [x](Var y) {
        for (std::int64_t i = 0; i < x.value().elements(); ++i)
          y.value().data[i] = x.value().data[i] + Real(0.01) * static_cast<Real>(i % 5 - 2);
      },
      [x](Var y) {
        for (std::int64_t i = 0; i < y.grad().elements(); ++i) x.grad().data[i] += y.grad().data[i];
      });
}

// Returns the value of y with the gradient of z.
Var value_of(Var y, Var z) {
  return record(
      "planted", y.shape(), {z},
      [y](Var out) { std::copy_n(y.value().data, y.value().elements(), out.value().data); },
      [z](Var out) {
        for (std::int64_t i = 0; i < out.grad().elements(); ++i) z.grad().data[i] += out.grad().data[i];
      });
}

std::vector<GradcheckResult> check(const GradcheckCase& c, Planted& error) {
  error.gradients.resize(c.inputs.size());
  const auto f = [&](Tape& tape, std::span<const Var> in) {
    std::vector<Var> inputs, old;
    for (std::size_t k = 0; k < in.size(); ++k) {
      inputs.push_back(with_gradient(in[k], error, error.gradients[k]));
      old.push_back(stale(inputs.back()));
    }
    if (error.plant == Plant::stale) return value_of(c.f(tape, inputs), c.f(tape, old));
    const Var y = c.f(tape, inputs);
    return error.plant == Plant::missing_term ? without_term(y) : y;
  };
  return gradcheck(c.op, f, c.inputs);
}

// Returns the largest difference of two gradients, relative to the largest element of the first.
Real change(const std::vector<Real>& right, const std::vector<Real>& wrong) {
  Real largest = 0, difference = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    largest = std::max(largest, std::abs(right[i]));
    difference =
        std::max(difference, std::abs(right[i] - (wrong.empty() ? 0 : wrong[i])));  // empty: never reached
  }
  return largest > 0 ? difference / largest : 0;
}

}  // namespace

TEST_CASE("errors planted in every op are found, and right gradients stay right", "[autograd][slow]") {
  const std::vector<std::pair<Plant, Real>> errors = {
      {Plant::sign, 0},           {Plant::factor, 1e-3},    {Plant::factor, -1e-3}, {Plant::factor, 1e-5},
      {Plant::factor, -1e-5},     {Plant::factor, 1e-8},    {Plant::transposed, 0}, {Plant::one_row, 0},
      {Plant::one_element, 1e-3}, {Plant::missing_term, 0}, {Plant::stale, 0}};
  std::map<Plant, int> found;
  for (const GradcheckCase& c : gradcheck_cases()) {
    Planted right;
    for (const GradcheckResult& result : check(c, right)) {
      CAPTURE(c.op, c.variant, result.input, result.reason);
      CHECK(result.verdict == ok);
    }
    for (const auto& [plant, relative] : errors) {
      Planted wrong_one{plant, relative};
      const auto results = check(c, wrong_one);
      for (std::size_t k = 0; k < c.inputs.size(); ++k) {
        const Real changed = change(right.gradients[k], wrong_one.gradients[k]);
        CAPTURE(c.op, c.variant, results[k].input, static_cast<int>(plant), relative, changed,
                results[k].reason);
        // The smallest factor is found in every case but one, of saturated and canceling scores.
        const bool blurred = std::abs(relative) < 1e-5 && c.variant == "large, and canceling";
        const bool must_be_found =
            changed > (plant == Plant::factor ? std::abs(relative) / 2 : 1e-5) && !blurred;
        if (must_be_found) CHECK(results[k].verdict == wrong);
        if (changed == 0) CHECK(results[k].verdict == ok);
        found[plant] += must_be_found;
      }
    }
  }
  // Enough of each, since a linear op has no saved value to be stale, and a vector no transpose.
  for (const auto& [plant, relative] : errors) {
    CAPTURE(static_cast<int>(plant));
    CHECK(found[plant] >= 50);
  }
}

#endif  // THIMBLE_DOUBLE
