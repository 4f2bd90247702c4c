#include "engine/kernels/softmax.h"

#include "catch.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/reference.h"

using namespace thimble;

namespace {

WideMatrix wanted_of(const Matrix& x) {
  WideMatrix y(x.rows(), x.cols());
  reference::softmax_forward(y, WideMatrix(x));
  return y;
}

Matrix softmax_of(const Matrix& x) {
  Matrix y(x.rows(), x.cols());
  kernels::softmax_forward(y, x);
  return y;
}

}  // namespace

TEST_CASE("softmax is exp over the sum of exp, at every width", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 3}) {
      CAPTURE(n, gap);
      const Matrix x(4, n, 1, gap);
      Matrix y(4, n, 2, gap + 1);
      kernels::softmax_forward(y, x);
      CHECK(worst_error(y, wanted_of(x)) < kRounding / 10);
      CHECK(y.intact());
    }
  }
}

TEST_CASE("softmax's backward adds y (dy - sum dy y)", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 3}) {
      CAPTURE(n, gap);
      const Matrix y = softmax_of(Matrix(4, n, 1)), dy(4, n, 2, gap);
      Matrix dx(4, n, 3, gap);
      const WideMatrix wanted(dx);
      kernels::softmax_backward(dx, dy, y);
      reference::softmax_backward(wanted, WideMatrix(dy), WideMatrix(y));
      CHECK(worst_error(dx, wanted) < kRounding / 10);
      CHECK(dx.intact());
    }
  }
}

TEST_CASE("softmax does not overflow", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    CAPTURE(n);
    Matrix x(3, n);
    for (std::int64_t c = 0; c < n; ++c) {
      x(0, c) = 10000;
      x(1, c) = -10000;
      x(2, c) = c == n / 2 ? std::numeric_limits<Real>::max() / 2 : -std::numeric_limits<Real>::max() / 2;
    }
    const Matrix y = softmax_of(x);
    CHECK(worst_error(y, [&](auto r, auto c) {
            return r < 2 ? 1.0L / n : c == n / 2 ? 1.0L : 0.0L;
          }) < kRounding);
  }
}

TEST_CASE("softmax is exact far below the largest, and 0 where its number would not be a normal one",
          "[kernels]") {
  constexpr std::int64_t kRows = 100'000, kCols = 17;  // a whole vector and what is left of one
  Matrix x(kRows, kCols);
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t c = 1; c < kCols; ++c)
      x(r, c) = static_cast<Real>(-100.0 * static_cast<double>(r * (kCols - 1) + c) / (kRows * kCols));
  }
  const Matrix y = softmax_of(x);
  double worst = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    long double sum = 0;
    for (std::int64_t c = 0; c < kCols; ++c) sum += std::exp(static_cast<long double>(x(r, c)));
    for (std::int64_t c = 0; c < kCols; ++c) {
      const long double expected = std::exp(static_cast<long double>(x(r, c))) / sum;
      if (x(r, c) > -87) {
        worst = std::max(worst, static_cast<double>(std::abs(y(r, c) / expected - 1)));
      } else {
        CHECK(y(r, c) < 2e-38);
      }
    }
  }
  CHECK(worst < (sizeof(Real) == 8 ? 1e-14 : 6e-7));
}

TEST_CASE("softmax gives nothing to minus infinity", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    CAPTURE(n);
    Matrix x(n, n, 1);  // row r sees the first r + 1
    for (std::int64_t r = 0; r < n; ++r) {
      for (std::int64_t c = r + 1; c < n; ++c) x(r, c) = -kInfinity;
    }
    CHECK(worst_error(softmax_of(x), wanted_of(x)) < kRounding);
  }
}

TEST_CASE("a NaN anywhere in a row makes the row NaN", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    std::int64_t numbers = 0;
    for (std::int64_t at = 0; at < n; ++at) {
      Matrix x(1, n, 1);
      x(0, at) = kNaN;
      const Matrix y = softmax_of(x);
      for (std::int64_t c = 0; c < n; ++c) numbers += !std::isnan(y(0, c));
    }
    CAPTURE(n);
    CHECK(numbers == 0);
  }
}

TEST_CASE("softmax may write over its input", "[kernels]") {
  Matrix x(3, 37, 1);
  const Matrix y = softmax_of(x);
  kernels::softmax_forward(x, x);
  CHECK(worst_error(x, [&](auto r, auto c) { return y(r, c); }) == 0);
}
