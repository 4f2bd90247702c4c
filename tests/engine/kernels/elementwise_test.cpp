#include "engine/kernels/elementwise.h"

#include "catch.h"
#include "engine/kernels/gelu.h"
#include "engine/kernels/matrix.h"

using namespace thimble;

namespace {

// Returns `count` values from -limit to limit in one row.
Matrix ramp(Real limit, std::int64_t count = 20001) {
  Matrix x(1, count);
  for (std::int64_t i = 0; i < count; ++i)
    x(0, i) = limit * (2 * static_cast<Real>(i) / static_cast<Real>(count - 1) - 1);
  return x;
}

Wide phi(Wide x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(Wide(-1))); }
Wide gelu(Wide x) { return x * std::erfc(-x / std::sqrt(Wide(2))) / 2; }
Wide gelu_slope(Wide x) { return std::erfc(-x / std::sqrt(Wide(2))) / 2 + x * phi(x); }

const Wide kRoot = std::sqrt(2 / std::acos(Wide(-1)));
Wide inner(Wide x) { return kRoot * (x + Wide(0.044715) * x * x * x); }
Wide gelu_tanh(Wide x) { return x / (1 + std::exp(-2 * inner(x))); }
Wide gelu_tanh_slope(Wide x) {
  const Wide s = 1 / (1 + std::exp(-2 * inner(x)));
  return s + x * s * (1 - s) * 2 * kRoot * (1 + 3 * Wide(0.044715) * x * x);
}

Wide silu(Wide x) { return x / (1 + std::exp(-x)); }
Wide silu_slope(Wide x) {
  const Wide s = 1 / (1 + std::exp(-x));
  return s + x * s / (1 + std::exp(x));
}

// Returns the largest error of a row of values of f, absolute or relative.
double worst(const Matrix& y, const Matrix& x, Wide (*f)(Wide), bool relative) {
  double most = 0;
  for (std::int64_t i = 0; i < x.cols(); ++i) {
    const Wide want = f(x(0, i)), gap = std::abs(y(0, i) - want);
    const Wide error = !relative || gap == 0 ? gap : gap / std::abs(want);
    most = std::max(most, std::isnan(error) ? HUGE_VAL : static_cast<double>(error));
  }
  return most;
}

using GeluForward = void (*)(MatrixView, MatrixView, ConstMatrixView);

}  // namespace

TEST_CASE("sums, products, multiples and ReLU are exact, at every width", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 3}) {
      CAPTURE(n, gap);
      const Matrix a(3, n, 1, gap), b(3, n, 2, gap + 1);
      Matrix y(3, n, 0, gap);
      kernels::add_forward(y, a, b);
      CHECK(worst_error(y, [&](auto r, auto c) { return a(r, c) + b(r, c); }) == 0);
      kernels::mul_forward(y, a, b);
      CHECK(worst_error(y, [&](auto r, auto c) { return a(r, c) * b(r, c); }) == 0);
      kernels::scale_forward(y, a, Real(-1.7));
      CHECK(worst_error(y, [&](auto r, auto c) { return Real(-1.7) * a(r, c); }) == 0);
      kernels::relu_forward(y, a);
      CHECK(worst_error(y, [&](auto r, auto c) { return a(r, c) > 0 ? a(r, c) : 0; }) == 0);
      CHECK(y.intact());
    }
  }
}

TEST_CASE("every element-wise backward adds, at every width", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 3}) {
      CAPTURE(n, gap);
      const Matrix before(3, n, 1, gap), dy(3, n, 2, gap), saved(3, n, 3, gap + 1);
      const auto error_of = [&](auto&& kernel, auto&& slope) {
        Matrix dx = before;
        kernel(dx);
        CHECK(dx.intact());
        return worst_error(
            dx, [&](auto r, auto c) { return before(r, c) + Wide(dy(r, c)) * slope(Wide(saved(r, c))); });
      };
      CHECK(error_of([&](Matrix& dx) { kernels::accumulate(dx, dy); }, [](Wide) { return Wide(1); }) <
            kRounding / 10);
      CHECK(error_of([&](Matrix& dx) { kernels::scale_backward(dx, dy, Real(0.5)); },
                     [](Wide) { return Wide(0.5); }) < kRounding / 10);
      CHECK(error_of([&](Matrix& da) { kernels::mul_backward(da, dy, saved); }, [](Wide b) { return b; }) <
            kRounding / 10);
      CHECK(error_of([&](Matrix& dx) { kernels::relu_backward(dx, dy, saved); },
                     [](Wide y) { return Wide(y > 0); }) < kRounding / 10);
      CHECK(error_of([&](Matrix& dx) { kernels::tanh_backward(dx, dy, saved); },
                     [](Wide y) { return 1 - y * y; }) < kRounding / 10);
    }
  }
}

TEST_CASE("ReLU passes no gradient on where it is 0", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    CAPTURE(n);
    const Matrix before(3, n, 1), dy(3, n, 2), y(3, n);
    Matrix dx = before;
    kernels::relu_backward(dx, dy, y);
    CHECK(worst_error(dx, [&](auto r, auto c) { return before(r, c); }) == 0);
  }
}

TEST_CASE("the functions do not depend on where in a row an element stands", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 3}) {
      CAPTURE(n, gap);
      const Matrix x(3, n, 1, gap);
      const auto compare = [&](auto&& forward, Wide (*f)(Wide)) {
        Matrix y(3, n, 2, gap), slope(3, n, 3, gap + 1);
        forward(y, slope);
        CHECK(worst_error(y, [&](auto r, auto c) { return f(x(r, c)); }) < kRounding / 10);
        CHECK(y.intact());
        CHECK(slope.intact());
      };
      compare([&](Matrix& y, Matrix&) { kernels::tanh_forward(y, x); }, [](Wide v) { return std::tanh(v); });
      compare([&](Matrix& y, Matrix& slope) { kernels::gelu_erf_forward(y, slope, x); }, gelu);
      compare([&](Matrix& y, Matrix& slope) { kernels::gelu_tanh_forward(y, slope, x); }, gelu_tanh);
      compare([&](Matrix& y, Matrix& slope) { kernels::gelu_erf_forward(slope, y, x); }, gelu_slope);
      compare([&](Matrix& y, Matrix& slope) { kernels::gelu_tanh_forward(slope, y, x); }, gelu_tanh_slope);
      compare([&](Matrix& y, Matrix& slope) { kernels::silu_forward(y, slope, x); }, silu);
      compare([&](Matrix& y, Matrix& slope) { kernels::silu_forward(slope, y, x); }, silu_slope);
    }
  }
}

TEST_CASE("GELU is within its promised error, the negative tail included", "[kernels]") {
  const Matrix x = ramp(10);
  Matrix y(1, x.cols()), slope(1, x.cols());
  kernels::gelu_erf_forward(y, slope, x);
  const double promised = sizeof(Real) == 8 ? 1e-13 : 1e-6;
  CHECK(worst(y, x, gelu, true) < promised);
  CHECK(worst(y, x, gelu, false) < (sizeof(Real) == 8 ? 1e-14 : 1e-6));
  CHECK(worst(slope, x, gelu_slope, false) < (sizeof(Real) == 8 ? 1e-14 : 1e-6));
}

TEST_CASE("the tanh form of GELU and its slope are accurate", "[kernels]") {
  const Matrix x = ramp(10);
  Matrix y(1, x.cols()), slope(1, x.cols());
  kernels::gelu_tanh_forward(y, slope, x);
  CHECK(worst(y, x, gelu_tanh, false) < (sizeof(Real) == 8 ? 1e-14 : 1e-6));
  CHECK(worst(slope, x, gelu_tanh_slope, false) < (sizeof(Real) == 8 ? 1e-14 : 1e-6));
}

TEST_CASE("SiLU and its slope are accurate", "[kernels]") {
  const Matrix x = ramp(30);
  Matrix y(1, x.cols()), slope(1, x.cols());
  kernels::silu_forward(y, slope, x);
  CHECK(worst(y, x, silu, true) < 8 * static_cast<double>(std::numeric_limits<Real>::epsilon()));
  CHECK(worst(slope, x, silu_slope, false) < (sizeof(Real) == 8 ? 1e-14 : 1e-6));
}

TEST_CASE("tanh is accurate, small and large arguments included", "[kernels]") {
  for (const Real limit : {Real(1e-6), Real(0.1), Real(3), Real(30), Real(1e6)}) {
    CAPTURE(limit);
    const Matrix x = ramp(limit);
    Matrix y(1, x.cols());
    kernels::tanh_forward(y, x);
    CHECK(worst(
              y, x, [](Wide v) { return std::tanh(v); }, true) <
          8 * static_cast<double>(std::numeric_limits<Real>::epsilon()));
  }
}

TEST_CASE("GELU and SiLU of huge arguments is x or 0", "[kernels]") {
  constexpr Real kMaxInput = std::numeric_limits<Real>::max();
  const std::pair<GeluForward, std::vector<Real>> cases[] = {
      {kernels::gelu_tanh_forward, {50, Real(1e4), Real(1e6)}},
      {kernels::silu_forward, {50, Real(1e4), Real(1e20), kMaxInput}},
      {kernels::gelu_erf_forward, {50, Real(1e4), Real(1e6), Real(1e20), kMaxInput}}};
  for (const auto& [forward, arguments] : cases) {
    for (const Real large : arguments) {
      for (const std::int64_t n : {1, 4, 16}) {
        CAPTURE(large, n);
        Matrix x(2, n), y(2, n), slope(2, n);
        for (std::int64_t c = 0; c < n; ++c) {
          x(0, c) = large;
          x(1, c) = -large;
        }
        forward(y, slope, x);
        CHECK(worst_error(y, [&](auto r, auto) { return r == 0 ? large : 0; }) < kRounding);
        CHECK(worst_error(slope, [&](auto r, auto) { return r == 0 ? 1 : 0; }) < kRounding);
      }
    }
  }
}

TEST_CASE("NaN stays NaN in every function", "[kernels]") {
  const auto with_slope = [](GeluForward f) {
    return [f](MatrixView y, ConstMatrixView x) {
      Matrix slope(x.rows, x.cols);
      f(y, slope, x);
    };
  };
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
      Matrix x(1, n, 1), y(1, n);
      x(0, at) = kNaN;
      const auto keeps = [&](auto&& forward) {
        y.fill(0);
        forward(y, x);
        return std::isnan(y(0, at));
      };
      CAPTURE(n, at);
      CHECK(keeps(kernels::relu_forward));
      CHECK(keeps(kernels::tanh_forward));
      CHECK(keeps(with_slope(kernels::gelu_erf_forward)));
      CHECK(keeps(with_slope(kernels::gelu_tanh_forward)));
      CHECK(keeps(with_slope(kernels::silu_forward)));
    }
  }
}

TEST_CASE("infinity goes where the function does", "[kernels]") {
  Matrix x(1, 20), y(1, 20);
  for (std::int64_t c = 0; c < 20; ++c) x(0, c) = c % 2 == 0 ? kInfinity : -kInfinity;
  kernels::relu_forward(y, x);
  for (std::int64_t c = 0; c < 20; ++c) CHECK(y(0, c) == (c % 2 == 0 ? kInfinity : 0));
  kernels::tanh_forward(y, x);
  for (std::int64_t c = 0; c < 20; ++c) CHECK(y(0, c) == (c % 2 == 0 ? 1 : -1));
}
