// Elementary functions with the same bits on every CPU and with every compiler: plain additions, products and
// divisions of IEEE doubles. Those of the C library come in variants, of which it takes one for the CPU at hand, and
// differ in their last bits. Within 1 ulp in the stated ranges; std::sqrt is exact anyway.
#pragma once

#include <cstdint>

namespace thimble::portable {

// Returns the natural logarithm; minus infinity for 0, NaN below.
double log(double x);

// Returns e^x.
double exp(double x);

// Returns x^y for x >= 0, within 1 ulp for results from 1e-5 to 1e5.
double pow(double x, double y);

// Returns x^n for n >= 0 by repeated squaring, exactly where the powers have at most 53 bits.
double power(double x, std::int64_t n);

// Return log(1 + x) and e^x - 1 for x >= 0, and the cube root of any x, within a few ulps.
double log1p(double x);
double expm1(double x);
double cbrt(double x);
// Returns the complementary error function of x >= 0, with a relative error below 1e-12.
double erfc(double x);

// Return the sine and the cosine of x for |x| <= 10^5.
double sin(double x);
double cos(double x);

}  // namespace thimble::portable
