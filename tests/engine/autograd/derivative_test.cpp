// Numerical derivatives: the error that they state holds, and no right derivative is called wrong.
#include "engine/autograd/derivative.h"

#include <limits>

#include "catch.h"
#include "thimble/engine/random.h"

using namespace thimble;
using enum GradcheckVerdict;

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

Line line_of(const std::function<double(double)>& f, double noise = 0) {
  return {f, f(0), kEpsilon * std::abs(f(0)) + noise, 1};
}

GradcheckVerdict verdict(const Line& line, double analytic) {
  return decide(line, analytic, std::abs(analytic), 0, [](const Derivative&) { return true; }).verdict;
}

}  // namespace

TEST_CASE("a derivative is within its error, which is small", "[autograd]") {
  int beyond = 0;
  for (int i = 0; i < 100; ++i) {
    const Random random(5, Stream::gradcheck);
    const auto draw = [&](std::uint32_t k) { return random.normal(static_cast<std::uint64_t>(i), k); };
    const double a = draw(0), b = draw(1), c = draw(2);
    const Line line = line_of([=](double t) { return std::exp(a * t) + std::sin(b + 3 * t) + c; });
    const double exact = a + 3 * std::cos(b);
    for (const auto& [h, rows] : {std::pair{0x1p-12, 2}, std::pair{0x1p-8, 5}, std::pair{0x1p-10, 5}}) {
      CAPTURE(i, h, rows);
      const Derivative d = differentiate(line, h, rows);
      CHECK(std::abs(d.value - exact) <= 3 * d.error);
      CHECK(d.error < (rows == 2 ? 1e-6 : 1e-10));
      beyond += std::abs(d.value - exact) > d.error;
    }
  }
  CHECK(beyond <= 3);  // of 300
}

TEST_CASE("noise beyond the last bit makes the error larger", "[autograd]") {
  const auto noisy = [](double t) { return std::exp(t) + 1e-9 * std::sin(1e9 * t); };
  const Derivative d = differentiate(line_of(noisy, 1e-9), 0x1p-8, 5);
  CHECK(std::abs(d.value - 1) <= d.error);
  CHECK(d.error > 1e-8);
  CHECK(verdict(line_of(noisy, 1e-9), 1) != wrong);
  CHECK(verdict(line_of(noisy, 1e-9), 1.1) == wrong);
}

TEST_CASE("tableaux that do not agree refute nothing", "[autograd]") {
  // Slope 2 at powers of two, and 3 at three quarters of them, which are the steps of the two tableaux.
  const auto two_faced = [](double t) {
    int exponent = 0;
    return std::abs(std::frexp(t, &exponent)) == 0.5 ? 2 * t : 3 * t;
  };
  CHECK(verdict(line_of(two_faced), 1) == undecided);
  CHECK(verdict(line_of([](double t) { return 2 * t; }), 1) == wrong);
}

TEST_CASE("a function that bends on a scale below the first steps has no wrong derivative", "[autograd]") {
  int decided = 0;
  for (double width = 1e-12; width < 1; width *= 1.7) {
    for (const double more : {-2.0, 1e-3, 1.0, 30.0, 1e3}) {
      if (std::abs(more) * width < 1e-12) continue;  // beside a loss of 2 rounding hides it
      CAPTURE(width, more);
      const Line bend =
          line_of([=](double t) { return std::exp(t) + more * width * std::tanh(t / width) + 1; });
      const Line waves =
          line_of([=](double t) { return std::exp(t) + more * width * std::sin(t / width) + 1; });
      for (const Line* line : {&bend, &waves}) {
        const GradcheckVerdict right = verdict(*line, 1 + more);
        CHECK(right != wrong);
        decided += right == ok;
        CHECK(verdict(*line, 1 + 3 * more) != ok);
        if (width > 1e-6) CHECK(verdict(*line, 1 + 3 * more) == wrong);
      }
    }
  }
  CHECK(decided > 200);
}

TEST_CASE("steps that the variable rounds away refute no verdict", "[autograd]") {
  const Line line = line_of([](double t) { return 4 * ((1.5 + t) - 1.5); });
  for (const double analytic : {-4.0, 1.0, 3.9}) CHECK(verdict(line, analytic) == wrong);
}

TEST_CASE("a kink anywhere is no wrong derivative", "[autograd]") {
  int decided = 0;
  for (const double side : {-1.0, 1.0}) {
    for (double distance = 1e-17; distance < 1; distance *= 1.7) {
      for (const double jump : {1e-9, 1e-6, 1e-3, 1.0, 1e3}) {
        CAPTURE(side, distance, jump);
        const Line line =
            line_of([=](double t) { return std::exp(t) + jump * std::max(0.0, side * t - distance) + 0.5; });
        const GradcheckVerdict right = verdict(line, 1);
        CHECK(right != wrong);
        decided += right == ok;
        if (jump >= 1e-3) CHECK(verdict(line, 1 + 10 * jump) != ok);
      }
    }
  }
  CHECK(decided > 350);  // of 720
}

TEST_CASE("a wrong derivative is wrong, however little, and one of a jump is open", "[autograd]") {
  const Line line = line_of([](double t) { return std::exp(t); });
  CHECK(verdict(line, 1) == ok);
  for (const double factor : {-1.0, 0.0, 2.0, 1 + 1e-5, 1 - 1e-5, 1 + 1e-8})
    CHECK(verdict(line, factor) == wrong);
  CHECK(verdict(line_of([](double t) { return t >= 0 ? 1.0 : 0.0; }), 0) == undecided);
  CHECK(verdict(line_of([](double t) { return std::log(t); }), 1) == undecided);
  CHECK(differentiate(line_of([](double) { return std::nan(""); }), 0x1p-8, 5).error == HUGE_VAL);
}
