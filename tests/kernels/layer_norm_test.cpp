#include "thimble/kernels/layer_norm.h"

#include "catch.h"
#include "kernels/matrix.h"

using namespace thimble;

namespace {

struct Row {
  long double mean = 0, rstd = 0;
};

Row statistics_of(const Matrix& x, std::int64_t r) {
  const auto n = static_cast<long double>(x.cols());
  Row row;
  long double variance = 0;
  for (std::int64_t c = 0; c < x.cols(); ++c) row.mean += x(r, c) / n;
  for (std::int64_t c = 0; c < x.cols(); ++c) variance += (x(r, c) - row.mean) * (x(r, c) - row.mean) / n;
  row.rstd = 1 / std::sqrt(variance + kEpsilon);
  return row;
}

}  // namespace

TEST_CASE("layer norm has mean 0 and variance 1 before its weight and bias", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 5}) {
      CAPTURE(n, gap);
      const Matrix x(3, n, 1, gap), weight(1, n, 2), bias(1, n, 3);
      Matrix y(3, n, 4, gap), statistics(3, 2);
      kernels::layer_norm_forward(y, statistics, x, weight, bias, kEpsilon);
      CHECK(worst_error(y, [&](auto r, auto c) {
              const Row row = statistics_of(x, r);
              return (x(r, c) - row.mean) * row.rstd * weight(0, c) + bias(0, c);
            }) < kRounding);
      CHECK(worst_error(statistics, [&](auto r, auto c) {
              return c == 0 ? statistics_of(x, r).mean : statistics_of(x, r).rstd;
            }) < kRounding);
      CHECK(y.intact());
    }
  }
}

TEST_CASE("layer norm's backward adds the three gradients", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 5}) {
      CAPTURE(n, gap);
      const Matrix x(3, n, 1, gap), weight(1, n, 2), bias(1, n, 3), dy(3, n, 4, gap);
      Matrix y(3, n), statistics(3, 2);
      kernels::layer_norm_forward(y, statistics, x, weight, bias, kEpsilon);
      const Matrix dx_before(3, n, 5, gap), dweight_before(1, n, 6), dbias_before(1, n, 7);
      Matrix dx = dx_before, dweight = dweight_before, dbias = dbias_before;
      kernels::layer_norm_backward(dx, dweight, dbias, dy, x, weight, statistics);
      const auto normal = [&](std::int64_t r, std::int64_t c) {
        const Row row = statistics_of(x, r);
        return (x(r, c) - row.mean) * row.rstd;
      };
      CHECK(worst_error(dx, [&](auto r, auto c) {
              const auto count = static_cast<long double>(n);
              long double mean_g = 0, mean_gn = 0;
              for (std::int64_t j = 0; j < n; ++j) {
                const long double g = static_cast<long double>(dy(r, j)) * weight(0, j);
                mean_g += g / count;
                mean_gn += g * normal(r, j) / count;
              }
              const long double g = static_cast<long double>(dy(r, c)) * weight(0, c);
              return dx_before(r, c) + statistics_of(x, r).rstd * (g - mean_g - normal(r, c) * mean_gn);
            }) < (n <= 2 ? 100 : 1) * kRounding);  // two columns: 1 / rstd is a small difference
      CHECK(worst_error(dweight, [&](auto, auto c) {
              long double sum = dweight_before(0, c);
              for (std::int64_t r = 0; r < 3; ++r) sum += dy(r, c) * normal(r, c);
              return sum;
            }) < kRounding);
      CHECK(worst_error(dbias, [&](auto, auto c) {
              long double sum = dbias_before(0, c);
              for (std::int64_t r = 0; r < 3; ++r) sum += dy(r, c);
              return sum;
            }) < kRounding);
      CHECK(dx.intact());
      CHECK(dweight.intact());
      CHECK(dbias.intact());
    }
  }
}

TEST_CASE("layer norm's backward skips what is not wanted", "[kernels]") {
  const Matrix x(3, 17, 1), weight(1, 17, 2), bias(1, 17, 3), dy(3, 17, 4);
  Matrix y(3, 17), statistics(3, 2);
  kernels::layer_norm_forward(y, statistics, x, weight, bias, kEpsilon);
  Matrix dx(3, 17), dweight(1, 17), dbias(1, 17);
  kernels::layer_norm_backward(dx, dweight, dbias, dy, x, weight, statistics);
  Matrix only_dx(3, 17), only_dweight(1, 17), only_dbias(1, 17);
  kernels::layer_norm_backward(only_dx, {}, {}, dy, x, weight, statistics);
  kernels::layer_norm_backward({}, only_dweight, {}, dy, x, weight, statistics);
  kernels::layer_norm_backward({}, {}, only_dbias, dy, x, weight, statistics);
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
    Matrix y(2, n), statistics(2, 2), weight(1, n), bias(1, n);
    weight.fill(1);
    kernels::layer_norm_forward(y, statistics, x, weight, bias, kEpsilon);
    const Real rounding = far * std::numeric_limits<Real>::epsilon();
    CHECK(worst_error(y, [&](auto r, auto c) {
            const Row row = statistics_of(x, r);
            return (x(r, c) - row.mean) * row.rstd;
          }) < 4 * static_cast<double>(rounding));
    CHECK(statistics(1, 1) < Real(320));  // 1 / sqrt(epsilon) = 316.2
  }
}

TEST_CASE("layer norm passes NaN on", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    CAPTURE(n);
    Matrix x(1, n, 1), y(1, n), statistics(1, 2);
    x(0, n - 1) = std::numeric_limits<Real>::quiet_NaN();
    const Matrix weight(1, n, 2), bias(1, n, 3);
    kernels::layer_norm_forward(y, statistics, x, weight, bias, kEpsilon);
    for (std::int64_t c = 0; c < n; ++c) CHECK(std::isnan(y(0, c)));
  }
}
