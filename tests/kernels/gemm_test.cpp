#include "thimble/kernels/gemm.h"

#include <utility>

#include "catch.h"
#include "kernels/matrix.h"
#include "thimble/core/error.h"
#include "thimble/kernels/linear.h"

using namespace thimble;
using kernels::Op;

namespace {

Real element(const Matrix& m, Op op, std::int64_t r, std::int64_t c) {
  return op == Op::none ? m(r, c) : m(c, r);
}

Matrix operand(Op op, std::int64_t rows, std::int64_t cols, std::uint64_t seed, std::int64_t gap) {
  return op == Op::none ? Matrix(rows, cols, seed, gap) : Matrix(cols, rows, seed, gap);
}

long double product(const Matrix& a, Op op_a, const Matrix& b, Op op_b, std::int64_t inner, std::int64_t r,
                    std::int64_t c) {
  long double sum = 0;
  for (std::int64_t p = 0; p < inner; ++p)
    sum += static_cast<long double>(element(a, op_a, r, p)) * element(b, op_b, p, c);
  return sum;
}

}  // namespace

TEST_CASE("gemm multiplies, whatever the sizes, strides and transposes", "[kernels]") {
  constexpr std::int64_t kSome[] = {1, 3, 16, 37};
  for (const std::int64_t m : kSome) {
    for (const std::int64_t k : kSome) {
      for (const std::int64_t n : kSome) {
        for (const Op op_a : {Op::none, Op::transpose}) {
          for (const Op op_b : {Op::none, Op::transpose}) {
            for (const std::int64_t gap : {0, 5}) {
              CAPTURE(m, k, n, op_a, op_b, gap);
              const Matrix a = operand(op_a, m, k, 1, gap), b = operand(op_b, k, n, 2, 2 * gap),
                           before(m, n, 3, gap);
              Matrix c = before;
              kernels::gemm(c, a, op_a, b, op_b, Real(1.5), Real(-0.5));
              CHECK(worst_error(c, [&](auto i, auto j) {
                      return 1.5L * product(a, op_a, b, op_b, k, i, j) - 0.5L * before(i, j);
                    }) < kRounding);
              CHECK(c.intact());
            }
          }
        }
      }
    }
  }
}

// Sizes at and around those of the parts that some CPUs cut a product into.
TEST_CASE("products in one piece and cut into parts multiply, into a block of columns as well", "[kernels]") {
  struct Sizes {
    std::int64_t m, n, k;
  };
  const bool cut = GENERATE(false, true);
  const auto gemm = cut ? kernels::gemm_in_parts : kernels::gemm;
  for (const auto& [m, n, k] : {Sizes{200, 65, 257}, Sizes{49, 130, 600}, Sizes{500, 16, 16},
                                Sizes{1, 300, 513}, Sizes{129, 3, 1000}, Sizes{3, 40, 9000}}) {
    for (const Op op_a : {Op::none, Op::transpose}) {
      for (const Op op_b : {Op::none, Op::transpose}) {
        if (cut && op_b == Op::transpose) continue;
        for (const Real beta : {Real(0), Real(1), Real(-0.5)}) {
          CAPTURE(cut, m, n, k, op_a, op_b, beta);
          const Matrix a = operand(op_a, m, k, 1, 3), b = operand(op_b, k, n, 2, 6);
          Matrix before(m, n, 3, 5);
          if (beta == 0) before.fill(kNaN);
          Matrix c = before;
          gemm(c, a, op_a, b, op_b, Real(1.5), beta);
          // Every seventh column is enough, and the last.
          double worst = 0;
          for (std::int64_t i = 0; i < m; i += 5) {
            for (std::int64_t j = i % 7; j < n; j += 7) {
              const long double old = beta == 0 ? 0 : beta * static_cast<long double>(before(i, j));
              const long double expected = 1.5L * product(a, op_a, b, op_b, k, i, j) + old;
              const auto error = static_cast<double>(std::abs(expected - c(i, j)));
              worst = std::max(worst, std::isnan(error) ? std::numeric_limits<double>::infinity() : error);
            }
          }
          CHECK(worst < 100 * kRounding);
          CHECK(c.intact());
        }
      }
    }
  }
}

TEST_CASE("no part of a product is larger than a kernel for small matrices takes", "[kernels]") {
  for (const std::int64_t m : {1, 40, 64, 100, 5000})
    for (const std::int64_t n : {1, 16, 64, 65, 1000})
      for (const std::int64_t k : {1, 16, 256, 257, 3000}) {
        CAPTURE(m, n, k);
        std::int64_t multiplications = 0;
        for (const Op op_a : {Op::none, Op::transpose}) {
          const kernels::Part part = kernels::part_of(op_a, m, n, k);
          CHECK((part.m > 0 && part.n > 0 && part.k > 0));
          multiplications = std::max(multiplications, part.m * part.n * part.k);
        }
        CHECK(multiplications < 1'000'000);
        CHECK(kernels::rows_per_part(n, k) == kernels::part_of(Op::none, m, n, k).m);
      }
}

TEST_CASE("gemm with beta 0 overwrites whatever there was", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    CAPTURE(n);
    const Matrix a(n, n, 1), b(n, n, 2);
    Matrix c(n, n);
    c.fill(kNaN);
    kernels::gemm(c, a, Op::none, b, Op::none, 1, 0);
    CHECK(worst_error(c, [&](auto i, auto j) { return product(a, Op::none, b, Op::none, n, i, j); }) <
          kRounding);
  }
}

TEST_CASE("gemm of an empty inner size gives beta c", "[kernels]") {
  const Matrix a(2, 0), b(0, 3);
  Matrix c(2, 3, 1), zero(2, 3, 1);
  const Matrix before = c;
  kernels::gemm(c, a, Op::none, b, Op::none, 1, 1);
  CHECK(worst_error(c, [&](auto i, auto j) { return before(i, j); }) == 0);
  kernels::gemm(zero, a, Op::none, b, Op::none, 1, 0);
  CHECK(worst_error(zero, [](auto, auto) { return 0; }) == 0);
}

TEST_CASE("gemm passes NaN on", "[kernels]") {
  Matrix a(2, 2, 1), c(2, 2);
  const Matrix zero(2, 2);
  a(0, 1) = kNaN;
  kernels::gemm(c, a, Op::none, zero, Op::none, 1, 0);
  CHECK(std::isnan(c(0, 0)));
  CHECK(c(1, 0) == 0);
}

TEST_CASE("gemm refuses sizes that do not fit", "[kernels]") {
  const Matrix a(2, 3, 1), b(4, 5, 1), good(3, 5, 1);
  Matrix c(2, 5), wide(2, 6), tall(3, 5);
  CHECK_THROWS_AS(kernels::gemm(c, a, Op::none, b, Op::none, 1, 0), ShapeError);
  CHECK_THROWS_AS(kernels::gemm(c, a, Op::transpose, good, Op::none, 1, 0), ShapeError);
  CHECK_THROWS_AS(kernels::gemm(c, a, Op::none, good, Op::transpose, 1, 0), ShapeError);
  CHECK_THROWS_AS(kernels::gemm(wide, a, Op::none, good, Op::none, 1, 0), ShapeError);
  CHECK_THROWS_AS(kernels::gemm(tall, a, Op::none, good, Op::none, 1, 0), ShapeError);
  CHECK_THROWS_WITH(kernels::gemm(c, a, Op::none, b, Op::none, 1, 0),
                    ContainsSubstring("gemm: (M, K) x (K, N) -> (M, N): got (2, 3) x (4, 5) -> (2, 5)"));
  CHECK_NOTHROW(kernels::gemm(c, a, Op::none, good, Op::none, 1, 0));
}

TEST_CASE("linear is x W^T + b and its backward adds, at every width", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const std::int64_t gap : {0, 5}) {
      for (const std::int64_t rows : {1, 8, 19}) {
        CAPTURE(n, gap, rows);
        const Matrix x(rows, 7, 1, gap), weight(n, 7, 2), bias(1, n, 3), dy(rows, n, 4, gap);
        Matrix y(rows, n, 5, gap);
        const auto expected = [&](auto r, auto c) {
          return product(x, Op::none, weight, Op::transpose, 7, r, c);
        };
        Matrix transposed(7, n);
        kernels::transpose(transposed, weight);
        for (const ConstMatrixView ready : {ConstMatrixView{}, std::as_const(transposed).view()}) {
          y.fill(kNaN);
          kernels::linear_forward(y, x, weight, ready, bias);
          CHECK(worst_error(y, [&](auto r, auto c) { return expected(r, c) + bias(0, c); }) < kRounding);
          y.fill(kNaN);
          kernels::linear_forward(y, x, weight, ready, {});
          CHECK(worst_error(y, expected) < kRounding);
        }
        CHECK(y.intact());

        const Matrix dx_before(rows, 7, 6, gap), dweight_before(n, 7, 7), dbias_before(1, n, 8);
        Matrix dx = dx_before, dweight = dweight_before, dbias = dbias_before;
        kernels::linear_backward(dx, dweight, dbias, dy, x, weight);
        CHECK(worst_error(dx, [&](auto r, auto c) {
                return dx_before(r, c) + product(dy, Op::none, weight, Op::none, n, r, c);
              }) < kRounding);
        CHECK(worst_error(dweight, [&](auto r, auto c) {
                return dweight_before(r, c) + product(dy, Op::transpose, x, Op::none, rows, r, c);
              }) < kRounding);
        CHECK(worst_error(dbias, [&](auto, auto c) {
                long double sum = dbias_before(0, c);
                for (std::int64_t r = 0; r < rows; ++r) sum += dy(r, c);
                return sum;
              }) < kRounding);
        CHECK((dx.intact() && dweight.intact() && dbias.intact()));
      }
    }
  }
}

TEST_CASE("linear's backward skips what is not wanted", "[kernels]") {
  const Matrix x(3, 5, 1), weight(4, 5, 2), dy(3, 4, 3);
  Matrix dx(3, 5), dweight(4, 5), dbias(1, 4), only_dx(3, 5), only_dweight(4, 5), only_dbias(1, 4);
  kernels::linear_backward(dx, dweight, dbias, dy, x, weight);
  kernels::linear_backward(only_dx, {}, {}, dy, x, weight);
  kernels::linear_backward({}, only_dweight, {}, dy, x, weight);
  kernels::linear_backward({}, {}, only_dbias, dy, x, weight);
  CHECK(worst_error(only_dx, [&](auto r, auto c) { return dx(r, c); }) == 0);
  CHECK(worst_error(only_dweight, [&](auto r, auto c) { return dweight(r, c); }) == 0);
  CHECK(worst_error(only_dbias, [&](auto r, auto c) { return dbias(r, c); }) == 0);
}
