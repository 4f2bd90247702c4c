#include "engine/kernels/norm.h"

#include "catch.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/reference.h"

using namespace thimble;

TEST_CASE("RMS norm divides by the root of the mean square, and its backward adds both gradients",
          "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 5}) {
      CAPTURE(n, gap);
      const Matrix x(3, n, 1, gap), weight(1, n, 2), dy(3, n, 4, gap);
      Matrix y(3, n, 3, gap), rrms(3, 1), dx(3, n, 5, gap), dweight(1, n, 6);
      const WideMatrix wanted_y(3, n), wanted_rrms(3, 1), wanted_dx(dx), wanted_dweight(dweight);
      kernels::rms_norm_forward(y, rrms, x, weight, kEpsilon);
      kernels::rms_norm_backward(dx, dweight, dy, x, weight, rrms);
      reference::rms_norm_forward(wanted_y, wanted_rrms, WideMatrix(x), WideMatrix(weight), Wide(kEpsilon));
      reference::rms_norm_backward(wanted_dx, wanted_dweight, WideMatrix(dy), WideMatrix(x),
                                   WideMatrix(weight), wanted_rrms);
      CHECK(worst_error(y, wanted_y) < kRounding);
      CHECK(worst_error(rrms, wanted_rrms) < kRounding);
      CHECK(worst_error(dx, wanted_dx) < (n <= 2 ? 100 : 1) * kRounding);  // the terms all but cancel
      CHECK(worst_error(dweight, wanted_dweight) < kRounding);
      CHECK((y.intact() && dx.intact() && dweight.intact()));
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
