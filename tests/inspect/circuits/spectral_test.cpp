// Eigenvalues and singular values against matrices whose values are known, and against sums of powers.
#include "thimble/inspect/spectral.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "catch.h"
#include "inspect/circuits/singular_values.h"
#include "random_matrix.h"
#include "thimble/engine/error.h"

using namespace thimble;

namespace {

DoubleMatrix of(std::int64_t rows, std::int64_t cols, std::vector<double> values) {
  DoubleMatrix m(rows, cols);
  m.values = std::move(values);
  return m;
}

double trace(const DoubleMatrix& a) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) sum += a(i, i);
  return sum;
}

double power_sum(const std::vector<double>& values, int power) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [&](double sum, double x) { return sum + std::pow(x, power); });
}

std::vector<std::complex<double>> sorted(std::vector<std::complex<double>> values) {
  std::ranges::sort(values, {}, [](auto x) { return std::pair(std::round(x.real() * 1e6), x.imag()); });
  return values;
}

}  // namespace

TEST_CASE("product and transposed are what they say", "[inspect]") {
  const DoubleMatrix a = of(2, 3, {1, 2, 3, 4, 5, 6}), b = of(3, 2, {1, 0, -1, 2, 0, 3});
  CHECK(matmul(a, b).values == std::vector<double>{-1, 13, -1, 28});
  CHECK(transposed(a).values == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(transposed(a).rows == 3);
  CHECK_THROWS_AS(matmul(a, a), ShapeError);
}

TEST_CASE("eigenvalues of matrices whose eigenvalues are known", "[inspect]") {
  const auto triangular = sorted(eigenvalues(of(3, 3, {2, 5, -7, 0, -1, 4, 0, 0, 0.5})));
  REQUIRE(triangular.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(std::abs(triangular[i] - std::vector<double>{-1, 0.5, 2}[i]) < 1e-14);

  const auto rotation = sorted(eigenvalues(of(2, 2, {0.6, -0.8, 0.8, 0.6})));
  CHECK(std::abs(rotation[0] - std::complex(0.6, -0.8)) < 1e-14);
  CHECK(std::abs(rotation[1] - std::complex(0.6, 0.8)) < 1e-14);

  // A cyclic shift: the roots of 1.
  const auto shift = eigenvalues(of(4, 4, {0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0}));
  for (const auto& x : shift) CHECK(std::abs(std::pow(x, 4) - 1.0) < 1e-13);
  CHECK(std::abs(std::accumulate(shift.begin(), shift.end(), std::complex(0.0))) < 1e-14);
}

TEST_CASE("the powers of eigenvalues add up to the traces of the powers", "[inspect]") {
  for (const std::int64_t n : {1, 2, 5, 16, 40}) {
    CAPTURE(n);
    const DoubleMatrix a = random_matrix(n, n, 7);
    const auto values = eigenvalues(a);
    REQUIRE(static_cast<std::int64_t>(values.size()) == n);
    DoubleMatrix power = a;
    for (int k = 1; k <= 5; ++k, power = matmul(power, a)) {
      std::complex<double> sum = 0;
      double scale = 0;
      for (const auto& x : values) {
        sum += std::pow(x, k);
        scale += std::pow(std::abs(x), k);
      }
      CHECK(std::abs(sum - trace(power)) < 1e-11 * scale);
    }
  }
}

TEST_CASE("singular values of matrices whose singular values are known", "[inspect]") {
  const auto diagonal = singular_values(of(2, 3, {0, -3, 0, 4, 0, 0}));
  REQUIRE(diagonal.size() == 2);
  CHECK_THAT(diagonal[0], WithinRel(4, 1e-14));
  CHECK_THAT(diagonal[1], WithinRel(3, 1e-14));
  for (const double s : singular_values(of(2, 2, {0.6, -0.8, 0.8, 0.6}))) CHECK_THAT(s, WithinRel(1, 1e-14));
}

TEST_CASE("the squares of singular values add up to the squares of the elements", "[inspect]") {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 9}, {9, 1}, {5, 8}, {8, 5}, {33, 33}}) {
    CAPTURE(rows, cols);
    const DoubleMatrix a = random_matrix(rows, cols, 3), gram = matmul(transposed(a), a);
    const auto values = singular_values(a);
    CHECK(static_cast<int>(values.size()) == std::min(rows, cols));
    CHECK(std::ranges::is_sorted(values, std::greater()));
    CHECK_THAT(power_sum(values, 2), WithinRel(trace(gram), 1e-12));
    CHECK_THAT(power_sum(values, 4), WithinRel(trace(matmul(gram, gram)), 1e-12));
  }
}

TEST_CASE("the singular values of a product need no more than its inner size", "[inspect]") {
  for (const auto& [m, k, n] :
       {std::array{12, 4, 9}, {9, 4, 12}, {4, 4, 4}, {3, 7, 9}, {9, 7, 3}, {1, 1, 1}}) {
    CAPTURE(m, k, n);
    const DoubleMatrix a = random_matrix(m, k, 1), b = random_matrix(k, n, 2);
    const auto full = singular_values(matmul(a, b)), values = singular_values_of_product(a, b);
    REQUIRE(values.size() == static_cast<std::size_t>(std::min({m, k, n})));
    for (std::size_t i = 0; i < full.size(); ++i)
      CHECK_THAT(i < values.size() ? values[i] : 0, WithinAbs(full[i], 1e-12 * full[0]));
  }
}

TEST_CASE("a small singular value of a product is not lost in squares", "[inspect]") {
  const DoubleMatrix a = of(3, 2, {1, 0, 0, 1e-10, 0, 0}), b = of(2, 3, {0, 1, 0, 1, 0, 0});
  const auto values = singular_values_of_product(a, b);
  REQUIRE(values.size() == 2);
  CHECK_THAT(values[1], WithinRel(1e-10, 1e-12));
}

TEST_CASE("spectral functions take empty matrices and refuse what they cannot use", "[inspect]") {
  CHECK(eigenvalues({}).empty());
  CHECK(singular_values_of_product(DoubleMatrix(3, 0), DoubleMatrix(0, 3)).empty());
  CHECK(singular_values_of_product(DoubleMatrix(3, 2), DoubleMatrix(2, 0)).empty());
  CHECK_THROWS_AS(eigenvalues(DoubleMatrix(2, 3)), ShapeError);
  CHECK_THROWS_AS(singular_values_of_product(DoubleMatrix(2, 3), DoubleMatrix(2, 3)), ShapeError);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    DoubleMatrix a(2, 2);
    a(1, 0) = bad;
    CHECK_THROWS_AS(eigenvalues(a), NumericError);
    CHECK_THROWS_AS(singular_values_of_product(a, DoubleMatrix(2, 2)), NumericError);
    CHECK_THROWS_AS(singular_values_of_product(DoubleMatrix(2, 2), a), NumericError);
    CHECK_THROWS_WITH(eigenvalues(a), ContainsSubstring("not finite"));
  }
}
