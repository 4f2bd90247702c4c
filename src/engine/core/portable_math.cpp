// Arguments are reduced by constants in two parts (Cody and Waite, "Software Manual for the Elementary Functions", 1980),
// and numbers that need more than 53 bits are sums of two doubles (Dekker 1971). Then Taylor series suffice.
#include "engine/core/portable_math.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace thimble::portable {

namespace {

// ln 2 = kLn2High + kLn2Low and pi / 2 = kHalfPi[0] + kHalfPi[1] + kHalfPi[2]; the last is rounded, and the others have
// 33 bits, so that products with integers below 2^20 are exact (fdlibm's e_exp.c and e_rem_pio2.c).
constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
constexpr double kHalfPi[] = {1.57079632673412561417e+00, 6.07710050630396597660e-11,
                              2.02226624879595063154e-21};

// 1 / n! for n = 0, 1, ...
constexpr auto kInverseFactorial = [] {
  std::array<double, 21> result{1};
  double factorial = 1;  // exact in double for all n here
  for (std::size_t n = 1; n < result.size(); ++n) result[n] = 1 / (factorial *= static_cast<double>(n));
  return result;
}();

constexpr double kInverseOdd[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                  1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25};

// The number high + low, with |low| at most half an ulp of high unless stated otherwise.
struct Sum {
  double high, low;
};

// Returns a + b for |a| >= |b|.
Sum fast_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// Returns a b, from halves whose products are exact.
Sum two_product(double a, double b) {
  const auto upper_half = [](double x) {
    const double scaled = (0x1p27 + 1) * x;
    return scaled - (scaled - x);
  };
  const double a_high = upper_half(a), a_low = a - a_high, b_high = upper_half(b), b_low = b - b_high;
  const double product = a * b;
  return {product, a_high * b_high - product + a_high * b_low + a_low * b_high + a_low * b_low};
}

// Returns ln x for positive finite x, with a relative error of 2^-59: x = 2^k m and s = (m - 1) / (m + 1), then
// ln m = 2 artanh s = 2 s (1 + s^2 / 3 + s^4 / 5 + ...) for |s| <= 0.172.
Sum long_log(double x) {
  int k = 0;
  double m = std::frexp(x, &k);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --k;
  }
  const Sum divisor = m < 1 ? fast_two_sum(1, m) : fast_two_sum(m, 1);
  const double quotient = (m - 1) / divisor.high;
  const Sum product = two_product(quotient, divisor.high);
  const double rest = (m - 1 - product.high - product.low - quotient * divisor.low) / divisor.high;
  const double square = quotient * quotient;
  double series = 0;
  for (std::size_t i = std::size(kInverseOdd); i-- > 0;) series = (series + kInverseOdd[i]) * square;
  const Sum sum = k == 0 ? Sum{2 * quotient, 0} : fast_two_sum(k * kLn2High, 2 * quotient);
  return fast_two_sum(sum.high, sum.low + (2 * rest + k * kLn2Low + 2 * quotient * series));
}

// Returns e^x: x = n ln 2 + r, e^x = 2^n (1 + r + r^2 / 2! + ...) for |r| <= ln(2) / 2.
double exp_of(Sum x) {
  if (!(x.high < 710)) return x.high * std::numeric_limits<double>::infinity();
  if (x.high < -746) return 0;
  const double n = std::floor(x.high / std::numbers::ln2 + 0.5);
  const Sum r = fast_two_sum(x.high - n * kLn2High, x.low - n * kLn2Low);
  double series = 0;
  for (std::size_t i = 15; i >= 2; --i) series = series * r.high + kInverseFactorial[i];
  return std::ldexp(1 + (r.high + (r.low + r.high * r.high * series)), static_cast<int>(n));
}

// Returns 1 / n! - z / (n + 2)! + z^2 / (n + 4)! - ...
double alternating_series(double z, std::size_t n) {
  double series = 0;
  for (std::size_t i = n + 16; i >= n; i -= 2) series = kInverseFactorial[i] - z * series;
  return series;
}

double sin_of(Sum r) {
  const double z = r.high * r.high;
  return r.high + (r.low * (1 - z / 2) - r.high * z * alternating_series(z, 3));
}

double cos_of(Sum r) {
  const double z = r.high * r.high, most = 1 - z / 2;
  return most + (1 - most - z / 2 + (z * z * alternating_series(z, 4) - r.high * r.low));
}

// Returns sin(x + quarters pi / 2): x = n pi / 2 + r for |r| <= pi / 4.
double sin_after(double x, int quarters) {
  const double n = std::floor(x / (std::numbers::pi / 2) + 0.5);
  const double first = x - n * kHalfPi[0], second = n * kHalfPi[1];  // exact
  const double high = first - second;
  const double low = n * kHalfPi[2] - (first - high - second);
  const Sum r{high - low, high - (high - low) - low};
  const auto quadrant = (static_cast<std::int64_t>(n) + quarters) & 3;
  const double result = quadrant % 2 == 0 ? sin_of(r) : cos_of(r);
  return quadrant < 2 ? result : -result;
}

}  // namespace

double log(double x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!(x > 0)) return x == 0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  return x < kInfinity ? long_log(x).high : x;
}

double exp(double x) { return exp_of({x, 0}); }

double pow(double x, double y) {
  if (x == 0 || y == 0) return y == 0 ? 1 : 0;
  const Sum logarithm = long_log(x), product = two_product(y, logarithm.high);
  return exp_of(fast_two_sum(product.high, product.low + y * logarithm.low));
}

double power(double x, std::int64_t n) {
  double result = 1;
  for (; n > 0; n /= 2, x *= x)
    if (n % 2 == 1) result *= x;
  return result;
}

// The error of 1 + x, or of e^x, is divided out (Kahan; Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
// section 1.14.1).
double log1p(double x) {
  const double u = 1 + x;
  return u == 1 || u == std::numeric_limits<double>::infinity() ? x : log(u) * (x / (u - 1));
}

double expm1(double x) {
  const double u = exp(x);
  if (u == 1) return x;
  return u == std::numeric_limits<double>::infinity() ? u : (u - 1) * (x / log(u));
}

double cbrt(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double a = std::abs(x), root = exp(log(a) / 3);
  return std::copysign(root - (root - a / (root * root)) / 3, x);
}

// The series of erf (Abramowitz and Stegun, 7.1.6), and from 2 on the continued fraction of erfc (7.1.14).
double erfc(double x) {
  const double scale = exp(-x * x) / std::sqrt(std::numbers::pi);
  if (x < 2) {
    double term = x, sum = x;
    for (int n = 1; n < 50; ++n) sum += term *= 2 * x * x / (2 * n + 1);
    return 1 - 2 * scale * sum;
  }
  double tail = x;
  for (int n = 60; n > 0; --n) tail = x + n / (2 * tail);
  return scale / tail;
}

double sin(double x) { return sin_after(x, 0); }
double cos(double x) { return sin_after(x, 1); }

}  // namespace thimble::portable
