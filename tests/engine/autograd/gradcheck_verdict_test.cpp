// Tests of the gradient check: verdicts on what is small, not finite or has a kink, and on the whole.
#include "thimble/engine/gradcheck.h"

#ifdef THIMBLE_DOUBLE

#include <cmath>
#include <limits>
#include <span>

#include "engine/autograd/planted.h"
#include "thimble/engine/ops.h"
#include "train/step/gradcheck_json.h"

using namespace thimble;
using namespace thimble::planted;
using enum GradcheckVerdict;

namespace {

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
constexpr Real kNaN = std::numeric_limits<Real>::quiet_NaN();

}  // namespace

TEST_CASE("a gradient too small to compare is undecided, and what the reason advises helps", "[autograd]") {
  const auto blind = [](Real step) {
    return [step](Tape& tape, Var x) {
      return elementwise(
          tape, x, [step](Real v) { return 1 + step * v * v; }, [step](Real v) { return 2 * step * v; });
    };
  };
  const auto relu_of = [](Tape&, Var x) { return relu(x); };
  const GradcheckResult dead = check_one({"x", Tensor({2}, {-1, -2})}, relu_of);
  CHECK(dead.verdict == undecided);
  CHECK(
      dead.reason ==
      "the gradient is 0, and so are differences: another seed would help if the input has an effect there");
  CHECK(check_one({"x", Tensor({2}, {1, -2})}, relu_of).verdict == ok);
  const GradcheckResult small = check_one(input("x", {3}), blind(1e-12));
  CHECK(small.verdict == undecided);
  CHECK_THAT(small.reason, ContainsSubstring("too small beside an error of") &&
                               ContainsSubstring("larger weights would help"));
  GradcheckInput larger = input("x", {3});
  for (Real& x : larger.value.values()) x *= 1e7;
  CHECK(check_one(larger, blind(1e-12)).verdict == ok);
  CHECK(check_one(input("x", {3}), blind(1e-6)).verdict == ok);
  CHECK(check_one(input("x", {3}), [](Tape& tape, Var x) {
          return elementwise(
              tape, x, [](Real v) { return 1 + 1e-9 * v; }, [](Real) { return 2e-9; });
        }).verdict == wrong);  // too small to be shown right, but not to be refuted

  GradcheckInput declared = input("x", {3});
  declared.zero_gradient = true;
  CHECK(check_one(declared, blind(0)).verdict == ok);
  CHECK(check_one(declared, blind(1e-2)).verdict == wrong);
  const auto hidden = [](Real value, Real slope) {
    return [value, slope](Tape& tape, Var x) {
      return elementwise(
          tape, x, [value](Real v) { return 1 + value * v; }, [slope](Real) { return slope; });
    };
  };
  CHECK(check_one(declared, hidden(0, 1e-3)).verdict == wrong);
  CHECK(check_one(declared, hidden(1e-3, 0)).verdict == wrong);  // the op is no constant
  GradcheckInput large = input("x", {300});                      // compared along directions too
  large.zero_gradient = true;
  CHECK(check_one(large, blind(0)).verdict == ok);
  CHECK(check_one(large, hidden(1e-3, 0)).verdict == wrong);
}

TEST_CASE("the error of a large tensor is the worst, that of a direction too", "[autograd]") {
  GradcheckInput factors = input("x", {300});
  for (Real& x : factors.value.values()) x = (1 + x / 10) / 2;
  // A product is linear in each of its factors, so that differences are exact, but not along a direction.
  const GradcheckResult result = check_one(factors, [](Tape&, Var x) {
    const std::span<const Real> values(x.value().data, 300);
    Real product = 1;
    for (const Real value : values) product *= 2 * value;
    return record(
        "planted", {1}, {x}, [=](Var y) { *y.value().data = product; },
        [=](Var y) {
          for (std::size_t i = 0; i < 300; ++i) x.grad().data[i] += product / values[i] * *y.grad().data;
        });
  });
  CHECK(result.verdict == ok);
  CHECK_THAT(result.index, StartsWith("direction "));
}

TEST_CASE("a gradient that is not finite is caught", "[autograd]") {
  for (const Real bad : {kNaN, kInfinity, -kInfinity}) {
    const GradcheckResult result = check_one(input("x", {2, 3}), [bad](Tape& tape, Var x) {
      return elementwise(tape, x, squared,
                         [bad, first = x.value().data[4]](Real v) { return v == first ? bad : 2 * v; });
    });
    CHECK(result.verdict == wrong);
    CHECK(result.worst_error == kInfinity);
  }
  const auto everywhere = [](Tape& tape, Var x) {
    return elementwise(tape, x, squared, [](Real) { return kNaN; });
  };
  CHECK(check_one(input("x", {2, 3}), everywhere).verdict == wrong);
  const auto logarithm = [](Tape& tape, Var x) {
    return elementwise(
        tape, x, [](Real v) { return std::log(v); }, [](Real v) { return 1 / v; });
  };
  const GradcheckResult result = check_one({"x", Tensor({2}, {1, -1})}, logarithm);
  CHECK(result.verdict == undecided);
  CHECK(result.reason == "the loss is not finite: values at which it is would help");
  CHECK(std::isnan(result.numeric));  // it was not measured
  CHECK(to_json(std::vector{result}).dump().find("\"numeric\":null") != std::string::npos);
  CHECK(check_one({"x", Tensor({2}, {1, 2})}, logarithm).verdict == ok);
}

TEST_CASE("a kink near the point is no false alarm, and hides no error", "[autograd]") {
  const GradcheckInput near{"x", Tensor({7}, {3e-6, -3e-6, 9e-6, -5e-7, 0.5, -0.5, 2})};
  const auto leaky = [](Real below) {  // does not tell that it has a kink
    return [below](Tape& tape, Var x) {
      return elementwise(
          tape, x, [](Real v) { return v > 0 ? v : v / 10; },
          [below](Real v) { return v > 0 ? Real(1) : below; });
    };
  };
  const auto relu_of = [](Tape&, Var x) { return relu(x); };
  CHECK(check_one(near, relu_of).verdict == ok);
  CHECK(check_one({"x", Tensor({4}, {1e-300, -1e-300, 0, 1})}, relu_of).verdict ==
        ok);  // nearer than any step
  CHECK(check_one(near, leaky(Real(0.1))).verdict == ok);
  CHECK(check_one(near, leaky(Real(0.2))).verdict == wrong);
  for (const Real distance : {1e-3, 3e-6, 1e-9, 1e-15}) {
    CAPTURE(distance);
    const GradcheckInput at{"x", Tensor({2}, {-distance, 1})};
    CHECK(check_one(at, leaky(Real(0.1))).verdict != wrong);
    CHECK(check_one(at, leaky(Real(0.55))).verdict != ok);  // the mean of both sides
  }
  const auto step = [](Tape& tape, Var x) {
    return elementwise(
        tape, x, [](Real v) { return v + Real(v > 0); }, [](Real) { return Real(1); });
  };
  const GradcheckResult jump = check_one({"x", Tensor({1}, {1e-15})}, step);
  CHECK(jump.verdict == undecided);
  CHECK_THAT(jump.reason, ContainsSubstring("another seed would help if the loss has a kink or a jump here"));
  CHECK(check_one({"x", Tensor({1}, {1})}, step).verdict == ok);
}

TEST_CASE("the JSON has the verdict, and the reason where it is not ok", "[autograd]") {
  std::vector<GradcheckResult> results(3);
  results[0].verdict = ok;
  results[1].verdict = wrong;
  results[1].reason = "why";
  const Json json = to_json(results);
  CHECK(json.at(0).at("verdict") == "ok");
  CHECK_FALSE(json.at(0).contains("reason"));
  CHECK(json.at(1).at("verdict") == "wrong");
  CHECK(json.at(1).at("reason") == "why");
  CHECK(json.at(2).at("verdict") == "undecided");
}

TEST_CASE("a check passes if nothing is wrong and something is ok", "[autograd]") {
  const auto passes = [](std::initializer_list<GradcheckVerdict> verdicts) {
    std::vector<GradcheckResult> results;
    for (const GradcheckVerdict v : verdicts) results.emplace_back().verdict = v;
    return passed(results);
  };
  CHECK(passes({ok, undecided}));
  CHECK_FALSE(passes({ok, wrong}));
  CHECK_FALSE(passes({undecided, undecided}));
  CHECK_FALSE(passes({}));
}

#endif  // THIMBLE_DOUBLE
