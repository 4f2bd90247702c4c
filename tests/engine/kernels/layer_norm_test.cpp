#include "engine/kernels/norm.h"

#include "catch.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/reference.h"

using namespace thimble;

namespace {

// The results of the reference.
struct Wanted {
  WideMatrix y, mean_rstd;

  Wanted(const Matrix& x, const Matrix& weight, const Matrix& bias)
      : y(x.rows(), x.cols()), mean_rstd(x.rows(), 2) {
    reference::layer_norm_forward(y, mean_rstd, WideMatrix(x), WideMatrix(weight), WideMatrix(bias),
                                  Wide(kEpsilon));
  }
};

}  // namespace

TEST_CASE("layer norm has mean 0 and variance 1 before its weight and bias", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 5}) {
      CAPTURE(n, gap);
      const Matrix x(3, n, 1, gap), weight(1, n, 2), bias(1, n, 3);
      Matrix y(3, n, 4, gap), mean_rstd(3, 2);
      kernels::layer_norm_forward(y, mean_rstd, x, weight, bias, kEpsilon);
      const Wanted wanted(x, weight, bias);
      CHECK(worst_error(y, wanted.y) < kRounding);
      CHECK(worst_error(mean_rstd, wanted.mean_rstd) < kRounding);
      CHECK(y.intact());
    }
  }
}

TEST_CASE("layer norm's backward adds the three gradients", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 5}) {
      CAPTURE(n, gap);
      const Matrix x(3, n, 1, gap), weight(1, n, 2), bias(1, n, 3), dy(3, n, 4, gap);
      Matrix y(3, n), mean_rstd(3, 2), dx(3, n, 5, gap), dweight(1, n, 6), dbias(1, n, 7);
      const WideMatrix wanted_dx(dx), wanted_dweight(dweight), wanted_dbias(dbias);
      kernels::layer_norm_forward(y, mean_rstd, x, weight, bias, kEpsilon);
      kernels::layer_norm_backward(dx, dweight, dbias, dy, x, weight, mean_rstd);
      reference::layer_norm_backward(wanted_dx, wanted_dweight, wanted_dbias, WideMatrix(dy), WideMatrix(x),
                                     WideMatrix(weight), Wanted(x, weight, bias).mean_rstd);
      CHECK(worst_error(dx, wanted_dx) < (n <= 2 ? 100 : 1) * kRounding);  // 1 / rstd is a small difference
      CHECK(worst_error(dweight, wanted_dweight) < kRounding);
      CHECK(worst_error(dbias, wanted_dbias) < kRounding);
      CHECK((dx.intact() && dweight.intact() && dbias.intact()));
    }
  }
}

TEST_CASE("layer norm's backward skips what is not wanted", "[kernels]") {
  const Matrix x(3, 17, 1), weight(1, 17, 2), bias(1, 17, 3), dy(3, 17, 4);
  Matrix y(3, 17), mean_rstd(3, 2);
  kernels::layer_norm_forward(y, mean_rstd, x, weight, bias, kEpsilon);
  Matrix dx(3, 17), dweight(1, 17), dbias(1, 17);
  kernels::layer_norm_backward(dx, dweight, dbias, dy, x, weight, mean_rstd);
  Matrix only_dx(3, 17), only_dweight(1, 17), only_dbias(1, 17);
  kernels::layer_norm_backward(only_dx, {}, {}, dy, x, weight, mean_rstd);
  kernels::layer_norm_backward({}, only_dweight, {}, dy, x, weight, mean_rstd);
  kernels::layer_norm_backward({}, {}, only_dbias, dy, x, weight, mean_rstd);
  CHECK(worst_error(only_dx, [&](auto r, auto c) { return dx(r, c); }) == 0);
  CHECK(worst_error(only_dweight, [&](auto r, auto c) { return dweight(r, c); }) == 0);
  CHECK(worst_error(only_dbias, [&](auto r, auto c) { return dbias(r, c); }) == 0);
}

TEST_CASE("layer norm of a row far from zero loses nothing but rounding", "[kernels]") {
  const Real far = sizeof(Real) == 8 ? Real(1e6) : Real(1000);
  for (const std::int64_t n : {7, 64, 100}) {
    CAPTURE(n);
    Matrix x(2, n, 1);
    for (std::int64_t c = 0; c < n; ++c) {
      x(0, c) += far;
      x(1, c) = 3;  // all equal: the variance is 0
    }
    Matrix y(2, n), mean_rstd(2, 2), weight(1, n), bias(1, n);
    weight.fill(1);
    kernels::layer_norm_forward(y, mean_rstd, x, weight, bias, kEpsilon);
    const Real rounding = far * std::numeric_limits<Real>::epsilon();
    CHECK(worst_error(y, Wanted(x, weight, bias).y) < 4 * static_cast<double>(rounding));
    CHECK(mean_rstd(1, 1) < Real(320));  // 1 / sqrt(epsilon) = 316.2
  }
}

TEST_CASE("layer norm passes NaN on", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    CAPTURE(n);
    Matrix x(1, n, 1), y(1, n), mean_rstd(1, 2);
    x(0, n - 1) = std::numeric_limits<Real>::quiet_NaN();
    const Matrix weight(1, n, 2), bias(1, n, 3);
    kernels::layer_norm_forward(y, mean_rstd, x, weight, bias, kEpsilon);
    for (std::int64_t c = 0; c < n; ++c) CHECK(std::isnan(y(0, c)));
  }
}
