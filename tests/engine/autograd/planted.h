// Small ops whose backward pass can be made wrong, for tests of the gradient check.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "catch.h"
#include "thimble/engine/gradcheck.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace planted {

// An op with the right or a wrong backward pass.
using Faulty = std::function<Var(Tape&, std::span<const Var>, bool right)>;

// Returns the names of the inputs with a verdict.
inline std::set<std::string> inputs_with(GradcheckVerdict verdict,
                                         const std::vector<GradcheckResult>& results) {
  std::set<std::string> names;
  for (const GradcheckResult& result : results) {
    if (result.verdict == verdict) names.insert(result.input);
  }
  return names;
}

// Checks that the right version is ok, and that the wrong one is wrong at exactly the inputs `caught_at`. Returns
// the results of the wrong one.
inline std::vector<GradcheckResult> expect_caught(const std::string& what,
                                                  const std::vector<GradcheckInput>& inputs,
                                                  const std::set<std::string>& caught_at, const Faulty& op) {
  CAPTURE(what);
  const auto check = [&](bool is_right) {
    return gradcheck(
        "planted", [&](Tape& tape, std::span<const Var> in) { return op(tape, in, is_right); }, inputs);
  };
  const auto right = check(true), wrong = check(false);
  CHECK(inputs_with(GradcheckVerdict::ok, right).size() == inputs.size());
  CHECK(inputs_with(GradcheckVerdict::wrong, wrong) == caught_at);
  CHECK(inputs_with(GradcheckVerdict::undecided, wrong).empty());
  return wrong;
}

inline GradcheckInput input(const std::string& name, const Shape& shape, std::uint64_t seed = 1) {
  const Random random(seed, Stream::gradcheck);
  Tensor value(shape);
  std::uint64_t i = 0;
  for (Real& x : value.values())
    x = static_cast<Real>(random.normal(i++, static_cast<std::uint32_t>(name.size() + name.front())));
  return {name, value};
}

// Returns inputs of one shape with different values.
inline std::vector<GradcheckInput> of(std::initializer_list<const char*> names, const Shape& shape) {
  std::vector<GradcheckInput> inputs;
  for (const char* name : names) inputs.push_back(input(name, shape, inputs.size() + 1));
  return inputs;
}

// Returns element (r, c) of a Var or of its gradient.
inline Real& at(MatrixView m, std::int64_t r, std::int64_t c) { return m.row(r)[c]; }

// Returns y = 2 x, with that backward pass.
template <class Backward>
Var doubled(Var x, const Backward& backward) {
  return record(
      "planted", x.shape(), {x},
      [x](Var y) {
        for (std::int64_t i = 0; i < x.value().elements(); ++i) y.value().data[i] = 2 * x.value().data[i];
      },
      backward);
}

// Returns y_i = f(x_i), with the backward pass dx_i += slope(x_i) dy_i.
template <class F, class Slope>
Var elementwise(Tape&, Var x, F f, Slope slope) {
  return record(
      "planted", x.shape(), {x},
      [&](Var y) {
        for (std::int64_t i = 0; i < x.value().elements(); ++i) y.value().data[i] = f(x.value().data[i]);
      },
      [=](Var y) {
        for (std::int64_t i = 0; i < x.value().elements(); ++i)
          x.grad().data[i] += slope(x.value().data[i]) * y.grad().data[i];
      });
}

inline Real squared(Real v) { return v * v; }

// Returns the result on the one input of f.
inline GradcheckResult check_one(const GradcheckInput& in, const std::function<Var(Tape&, Var)>& f) {
  return gradcheck(
             "planted", [&](Tape& tape, std::span<const Var> x) { return f(tape, x[0]); }, std::vector{in})
      .front();
}

}  // namespace planted
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
