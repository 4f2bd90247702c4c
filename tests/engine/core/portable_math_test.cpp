#include "engine/core/portable_math.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "catch.h"
#include "thimble/engine/random.h"

using namespace thimble;

namespace {

// Returns the distance from `expected` in ulps of `expected`.
double ulps(double actual, long double expected) {
  int exponent = 0;
  std::frexp(static_cast<double>(expected), &exponent);
  const long double error = std::abs(static_cast<long double>(actual) - expected);
  return static_cast<double>(std::ldexp(error, 53 - exponent));
}

// Returns the largest distance of f from `reference` in ulps, over many numbers between low and high.
template <class F, class Reference>
double worst_ulps(double low, double high, const F& f, const Reference& reference) {
  const Random random(1, Stream::gradcheck);
  double worst = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const double x = low + (high - low) * random.uniform(i);
    worst = std::max(worst, ulps(f(x), reference(static_cast<long double>(x))));
  }
  return worst;
}

}  // namespace

TEST_CASE("portable functions are within an ulp of the C library's in long double", "[core][slow]") {
  const auto log = [](long double x) { return std::log(x); };
  CHECK(worst_ulps(0, 1, portable::log, log) < 0.6);
  CHECK(worst_ulps(0.5, 2, portable::log, log) < 0.6);
  CHECK(worst_ulps(1, 1e300, portable::log, log) < 0.6);
  const auto exp = [](long double x) { return std::exp(x); };
  CHECK(worst_ulps(-1, 1, portable::exp, exp) < 0.9);
  CHECK(worst_ulps(-700, 700, portable::exp, exp) < 0.9);
  for (const double range : {4.0, 1e5}) {
    CHECK(worst_ulps(-range, range, portable::sin, [](long double x) { return std::sin(x); }) < 0.9);
    CHECK(worst_ulps(-range, range, portable::cos, [](long double x) { return std::cos(x); }) < 0.9);
  }
  for (const double base : {0.9, 0.999, 2.0, 3.0, 10000.0}) {
    CAPTURE(base);
    const double range = std::abs(std::log(1e5) / std::log(base));
    CHECK(worst_ulps(
              -range, range, [&](double y) { return portable::pow(base, y); },
              [&](long double y) { return std::pow(static_cast<long double>(base), y); }) < 0.95);
  }
}

TEST_CASE("portable functions of statistics are close to the C library's in long double", "[core]") {
  CHECK(worst_ulps(0, 1, portable::log1p, [](long double x) { return std::log1p(x); }) < 3);
  CHECK(worst_ulps(0, 1e6, portable::log1p, [](long double x) { return std::log1p(x); }) < 3);
  CHECK(worst_ulps(0, 1e-6, portable::expm1, [](long double x) { return std::expm1(x); }) < 3);
  CHECK(worst_ulps(0, 5, portable::expm1, [](long double x) { return std::expm1(x); }) < 3);
  CHECK(worst_ulps(-100, 100, portable::cbrt, [](long double x) { return std::cbrt(x); }) < 2);
  CHECK(portable::cbrt(0) == 0);
  for (double x = 0; x < 25; x += 0.01) {
    CAPTURE(x);
    const double expected = static_cast<double>(std::erfc(static_cast<long double>(x)));
    CHECK(std::abs(portable::erfc(x) - expected) <= 1e-12 * expected);
  }
}

TEST_CASE("portable sine and cosine keep their digits next to a zero", "[core]") {
  for (const int n : {1, 2, 3, 4, 7, 100, 9999, 60000}) {
    CAPTURE(n);
    const double x = n * (std::numbers::pi / 2);
    const auto exact = static_cast<long double>(x);
    CHECK(ulps(portable::sin(x), std::sin(exact)) < 1);
    CHECK(ulps(portable::cos(x), std::cos(exact)) < 1);
  }
}

TEST_CASE("portable functions are exact where the result is a short number, and at the ends of their ranges",
          "[core]") {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  CHECK(portable::log(1) == 0);
  CHECK(portable::log(0) == -kInfinite);
  CHECK(portable::log(kInfinite) == kInfinite);
  CHECK(std::isnan(portable::log(-1)));
  CHECK(std::isnan(portable::log(std::numeric_limits<double>::quiet_NaN())));
  CHECK(portable::log(5e-324) == std::log(5e-324));
  CHECK(portable::exp(0) == 1);
  CHECK(portable::exp(-kInfinite) == 0);
  CHECK(portable::exp(-746) == 0);
  CHECK(portable::exp(-745) == 5e-324);
  CHECK(portable::exp(710) == kInfinite);
  CHECK(portable::exp(kInfinite) == kInfinite);
  CHECK(std::isnan(portable::exp(std::numeric_limits<double>::quiet_NaN())));
  CHECK(portable::sin(0) == 0);
  CHECK(portable::cos(0) == 1);
  CHECK(portable::cos(std::numbers::pi) == -1);
  CHECK(portable::pow(0, 0.5) == 0);
  CHECK(portable::pow(0, 0) == 1);
  CHECK(portable::pow(3, 0) == 1);
  CHECK(portable::pow(2, -8) == 0x1p-8);
  CHECK(portable::pow(10000, 0.5) == 100);
  CHECK(portable::power(0, 0) == 1);
  CHECK(portable::power(7, 18) == 1628413597910449);
  CHECK(portable::power(0.5, 1074) == 5e-324);
}
