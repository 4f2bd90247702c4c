#include "thimble/kernels/rms_norm.h"

#include "catch.h"
#include "kernels/matrix.h"

using namespace thimble;

namespace {

long double rrms_of(const Matrix& x, std::int64_t r) {
  long double squares = 0;
  for (std::int64_t c = 0; c < x.cols(); ++c) squares += static_cast<long double>(x(r, c)) * x(r, c);
  return 1 / std::sqrt(squares / static_cast<long double>(x.cols()) + kEpsilon);
}

}  // namespace

TEST_CASE("RMS norm divides by the root of the mean square", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 5}) {
      CAPTURE(n, gap);
      const Matrix x(3, n, 1, gap), weight(1, n, 2);
      Matrix y(3, n, 4, gap), rrms(3, 1);
      kernels::rms_norm_forward(y, rrms, x, weight, kEpsilon);
      CHECK(worst_error(y, [&](auto r, auto c) { return x(r, c) * rrms_of(x, r) * weight(0, c); }) <
            kRounding);
      CHECK(worst_error(rrms, [&](auto r, auto) { return rrms_of(x, r); }) < kRounding);
      CHECK(y.intact());
    }
  }
}

TEST_CASE("RMS norm's backward adds both gradients", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 5}) {
      CAPTURE(n, gap);
      const Matrix x(3, n, 1, gap), weight(1, n, 2), dy(3, n, 4, gap);
      Matrix y(3, n), rrms(3, 1);
      kernels::rms_norm_forward(y, rrms, x, weight, kEpsilon);
      const Matrix dx_before(3, n, 5, gap), dweight_before(1, n, 6);
      Matrix dx = dx_before, dweight = dweight_before;
      kernels::rms_norm_backward(dx, dweight, dy, x, weight, rrms);
      // The quotient rule on x_c / sqrt(s), s = mean x^2 + epsilon, is the second way to the gradient.
      CHECK(worst_error(dx, [&](auto r, auto c) {
              const long double factor = rrms_of(x, r);
              long double sum_gx = 0;
              for (std::int64_t j = 0; j < n; ++j)
                sum_gx += static_cast<long double>(dy(r, j)) * weight(0, j) * x(r, j);
              return dx_before(r, c) + dy(r, c) * weight(0, c) * factor -
                     sum_gx * x(r, c) * factor * factor * factor / static_cast<long double>(n);
            }) < (n <= 2 ? 100 : 1) * kRounding);  // one or two columns: the terms all but cancel
      CHECK(worst_error(dweight, [&](auto, auto c) {
              long double sum = dweight_before(0, c);
              for (std::int64_t r = 0; r < 3; ++r) sum += dy(r, c) * x(r, c) * rrms_of(x, r);
              return sum;
            }) < kRounding);
      CHECK(dx.intact());
      CHECK(dweight.intact());
    }
  }
}

TEST_CASE("RMS norm's backward skips what is not wanted", "[kernels]") {
  const Matrix x(3, 17, 1), weight(1, 17, 2), dy(3, 17, 4);
  Matrix y(3, 17), rrms(3, 1);
  kernels::rms_norm_forward(y, rrms, x, weight, kEpsilon);
  Matrix dx(3, 17), dweight(1, 17), only_dx(3, 17), only_dweight(1, 17);
  kernels::rms_norm_backward(dx, dweight, dy, x, weight, rrms);
  kernels::rms_norm_backward(only_dx, {}, dy, x, weight, rrms);
  kernels::rms_norm_backward({}, only_dweight, dy, x, weight, rrms);
  CHECK(worst_error(only_dx, [&](auto r, auto c) { return dx(r, c); }) == 0);
  CHECK(worst_error(only_dweight, [&](auto r, auto c) { return dweight(r, c); }) == 0);
}

TEST_CASE("RMS norm of zeros is zero, and passes NaN on", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    CAPTURE(n);
    Matrix x(2, n), y(2, n), rrms(2, 1);
    const Matrix weight(1, n, 2);
    x(1, n - 1) = std::numeric_limits<Real>::quiet_NaN();
    kernels::rms_norm_forward(y, rrms, x, weight, kEpsilon);
    for (std::int64_t c = 0; c < n; ++c) {
      CHECK(y(0, c) == 0);
      CHECK(std::isnan(y(1, c)));
    }
  }
}
