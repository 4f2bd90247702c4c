#include "thimble/engine/gemm.h"

#include <cmath>
#include <utility>

#include "catch.h"
#include "engine/kernels/arithmetic.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/products/linear.h"
#include "thimble/engine/error.h"

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
  constexpr std::int64_t kSome[] = {1, 3, 7, 16, 20, 37};
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
              kernels::gemm_add(c, a, op_a, b, op_b);
              CHECK(worst_error(c, [&](auto i, auto j) {
                      return product(a, op_a, b, op_b, k, i, j) + before(i, j);
                    }) < kRounding);
              CHECK(c.intact());
            }
          }
        }
      }
    }
  }
}

// Sizes at and around those of tiles, panels and blocks.
TEST_CASE("large products multiply, packed or not, into a block of columns as well", "[kernels][slow]") {
  struct Sizes {
    std::int64_t m, n, k;
  };
  for (const auto& [m, n, k] :
       {Sizes{200, 65, 257}, Sizes{49, 530, 600}, Sizes{500, 16, 16}, Sizes{1, 300, 513}, Sizes{145, 3, 1000},
        Sizes{3, 40, 9000}, Sizes{37, 64, 512}}) {
    for (const Op op_a : {Op::none, Op::transpose}) {
      for (const Op op_b : {Op::none, Op::transpose}) {
        for (const bool adds : {false, true}) {
          for (const std::int64_t stride : {0, 4096}) {  // of a: lines that share a place in the cache
            CAPTURE(m, n, k, op_a, op_b, adds, stride);
            const std::int64_t columns = op_a == Op::none ? k : m;
            const Matrix a = operand(op_a, m, k, 1, std::max<std::int64_t>(3, stride - columns));
            const Matrix b = operand(op_b, k, n, 2, stride == 0 ? 6 : 0);
            Matrix before(m, n, 3, 5);
            if (!adds) before.fill(kNaN);
            Matrix c = before, from_packed = before;
            kernels::gemm_add({c, !adds}, a, op_a, b, op_b);
            // Every seventh column is enough, and the last.
            double worst = 0;
            for (std::int64_t i = 0; i < m; i += 5) {
              for (std::int64_t j = i % 7; j < n; j += 7) {
                const long double old = adds ? before(i, j) : 0;
                const auto error =
                    static_cast<double>(std::abs(product(a, op_a, b, op_b, k, i, j) + old - c(i, j)));
                worst = std::max(worst, std::isnan(error) ? std::numeric_limits<double>::infinity() : error);
              }
            }
            CHECK(worst < 100 * kRounding);
            CHECK(c.intact());
            if (op_a == Op::transpose) continue;
            std::vector<Real> memory(static_cast<std::size_t>(kernels::packed_size(k, n)));
            const kernels::PackedView packed = kernels::pack(memory.data(), b, op_b);
            kernels::gemm_packed(from_packed, adds ? before.view() : ConstMatrixView{}, a, packed);
            CHECK(worst_error(from_packed, [&](auto i, auto j) { return c(i, j); }) == 0);
            CHECK(from_packed.intact());
          }
        }
      }
    }
  }
}

// The promise of gemm.h: one chain of multiply-adds per element, from what c held.
TEST_CASE("a block of a packed matrix multiplies as the block itself", "[kernels]") {
  const Matrix a(5, 40, 1), b(40, 100, 2);
  std::vector<Real> memory(static_cast<std::size_t>(kernels::packed_size(40, 100)));
  const kernels::PackedView packed = kernels::pack(memory.data(), b, Op::none);

  const ConstMatrixView some = a.view().column_block(3, 10);
  Matrix rows(5, 100), expected_rows(5, 100);
  kernels::gemm_packed(rows, {}, some, packed.row_block(3, 10));
  kernels::gemm(expected_rows, some, Op::none, b.view().row_block(3, 10), Op::none);
  CHECK(worst_error(rows, [&](auto r, auto c) { return expected_rows(r, c); }) == 0);

  // A panel starts at column 64, however wide it is, and none at column 1.
  Matrix columns(5, 36), expected_columns(5, 36);
  kernels::gemm_packed(columns, {}, a, packed.column_block(64, 36));
  kernels::gemm(expected_columns, a, Op::none, b.view().column_block(64, 36), Op::none);
  CHECK(worst_error(columns, [&](auto r, auto c) { return expected_columns(r, c); }) == 0);
  CHECK(packed.column_block(1, 2).data == nullptr);
}

TEST_CASE("an element of a product is one chain in ascending order", "[kernels]") {
  constexpr std::int64_t kRows = 29, kColumns = 71, kInner = 700;
  const Matrix a(kRows, kInner, 1), b(kInner, kColumns, 2), before(kRows, kColumns, 3);
  Matrix c = before;
  kernels::gemm_add(c, a, Op::none, b, Op::none);
  const bool fused = kernels::arithmetic() == "fused";
  std::int64_t different = 0;
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t j = 0; j < kColumns; ++j) {
      Real sum = before(i, j);
      for (std::int64_t p = 0; p < kInner; ++p) {
        const Real product = a(i, p) * b(p, j);
        sum = fused ? std::fma(a(i, p), b(p, j), sum) : sum + product;
      }
      different += sum != c(i, j);
    }
  }
  CHECK(different == 0);
}

TEST_CASE("gemm overwrites whatever there was", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    CAPTURE(n);
    const Matrix a(n, n, 1), b(n, n, 2);
    Matrix c(n, n);
    c.fill(kNaN);
    kernels::gemm(c, a, Op::none, b, Op::none);
    CHECK(worst_error(c, [&](auto i, auto j) { return product(a, Op::none, b, Op::none, n, i, j); }) <
          kRounding);
  }
}

TEST_CASE("gemm of an empty inner size adds nothing", "[kernels]") {
  const Matrix a(2, 0), b(0, 3);
  Matrix c(2, 3, 1), zero(2, 3, 1);
  const Matrix before = c;
  kernels::gemm_add(c, a, Op::none, b, Op::none);
  CHECK(worst_error(c, [&](auto i, auto j) { return before(i, j); }) == 0);
  kernels::gemm(zero, a, Op::none, b, Op::none);
  CHECK(worst_error(zero, [](auto, auto) { return 0; }) == 0);
}

TEST_CASE("gemm writes nothing where the result has no rows or no columns", "[kernels]") {
  const Matrix a(2, 3, 1), b(3, 4, 2);
  std::vector<Real> memory(static_cast<std::size_t>(kernels::packed_size(3, 4)));
  const kernels::PackedView packed = kernels::pack(memory.data(), b, Op::none);
  Matrix c(2, 4, 3);
  const Matrix before = c;
  const auto is_as_before = [&] { return worst_error(c, [&](auto i, auto j) { return before(i, j); }) == 0; };
  kernels::gemm_add(c.view().column_block(1, 0), a, Op::none, b.view().column_block(1, 0), Op::none);
  CHECK(is_as_before());
  kernels::gemm_add(c.view().row_block(1, 0), a.view().row_block(1, 0), Op::none, b, Op::none);
  CHECK(is_as_before());
  kernels::gemm_packed(c.view().row_block(1, 0), {}, a.view().row_block(1, 0), packed);
  CHECK(is_as_before());
  CHECK(kernels::PackedView{}.column_block(0, 1).data == nullptr);
}

TEST_CASE("gemm passes NaN on", "[kernels]") {
  Matrix a(2, 2, 1), c(2, 2);
  const Matrix zero(2, 2);
  a(0, 1) = kNaN;
  kernels::gemm(c, a, Op::none, zero, Op::none);
  CHECK(std::isnan(c(0, 0)));
  CHECK(c(1, 0) == 0);
}

TEST_CASE("gemm refuses sizes that do not fit", "[kernels]") {
  const Matrix a(2, 3, 1), b(4, 5, 1), good(3, 5, 1);
  Matrix c(2, 5), wide(2, 6), tall(3, 5);
  CHECK_THROWS_AS(kernels::gemm(c, a, Op::none, b, Op::none), ShapeError);
  CHECK_THROWS_AS(kernels::gemm(c, a, Op::transpose, good, Op::none), ShapeError);
  CHECK_THROWS_AS(kernels::gemm(c, a, Op::none, good, Op::transpose), ShapeError);
  CHECK_THROWS_AS(kernels::gemm(wide, a, Op::none, good, Op::none), ShapeError);
  CHECK_THROWS_AS(kernels::gemm(tall, a, Op::none, good, Op::none), ShapeError);
  CHECK_THROWS_WITH(kernels::gemm(c, a, Op::none, b, Op::none),
                    ContainsSubstring("gemm: (M, K) x (K, N) -> (M, N): got (2, 3) x (4, 5) -> (2, 5)"));
  CHECK_NOTHROW(kernels::gemm(c, a, Op::none, good, Op::none));
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
        std::vector<Real> forward(static_cast<std::size_t>(kernels::packed_size(7, n))),
            backward(static_cast<std::size_t>(kernels::packed_size(n, 7)));
        for (const bool packs : {false, true}) {
          using kernels::PackedView;
          const PackedView packed =
              packs ? kernels::pack(forward.data(), weight, Op::transpose) : PackedView{};
          y.fill(kNaN);
          kernels::linear_forward(y, x, weight, packed, bias);
          CHECK(worst_error(y, [&](auto r, auto c) { return expected(r, c) + bias(0, c); }) < kRounding);
          y.fill(kNaN);
          kernels::linear_forward(y, x, weight, packed, {});
          CHECK(worst_error(y, expected) < kRounding);
        }
        CHECK(y.intact());

        const Matrix dx_before(rows, 7, 6, gap), dweight_before(n, 7, 7), dbias_before(1, n, 8);
        Matrix dx = dx_before, dweight = dweight_before, dbias = dbias_before;
        Matrix dx_packed = dx_before, dweight_packed = dweight_before, dbias_packed = dbias_before;
        kernels::linear_backward(dx, dweight, dbias, dy, x, weight, {});
        kernels::linear_backward(dx_packed, dweight_packed, dbias_packed, dy, x, weight,
                                 kernels::pack(backward.data(), weight, Op::none));
        CHECK(worst_error(dx_packed, [&](auto r, auto c) { return dx(r, c); }) == 0);
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

TEST_CASE("linear's backward skips what is not wanted, and overwrites what is not initialized", "[kernels]") {
  const Matrix x(3, 5, 1), weight(4, 5, 2), dy(3, 4, 3);
  Matrix dx(3, 5), dweight(4, 5), dbias(1, 4), only_dx(3, 5), only_dweight(4, 5), only_dbias(1, 4);
  kernels::linear_backward(dx, dweight, dbias, dy, x, weight, {});
  std::vector<Real> memory(static_cast<std::size_t>(kernels::packed_size(4, 5)));
  Matrix overwritten(3, 5, 4);
  kernels::linear_backward({overwritten, true}, {}, {}, dy, x, weight,
                           kernels::pack(memory.data(), weight, Op::none));
  CHECK(worst_error(overwritten, [&](auto r, auto c) { return dx(r, c); }) == 0);
  kernels::linear_backward(only_dx, {}, {}, dy, x, weight, {});
  kernels::linear_backward({}, only_dweight, {}, dy, x, weight, {});
  kernels::linear_backward({}, {}, only_dbias, dy, x, weight, {});
  CHECK(worst_error(only_dx, [&](auto r, auto c) { return dx(r, c); }) == 0);
  CHECK(worst_error(only_dweight, [&](auto r, auto c) { return dweight(r, c); }) == 0);
  CHECK(worst_error(only_dbias, [&](auto r, auto c) { return dbias(r, c); }) == 0);
}
