// Rotary positions against their definition: pairs of columns as complex numbers, times e^(i angle).
#include "thimble/kernels/rotary.h"

#include <complex>

#include "catch.h"
#include "kernels/matrix.h"

using namespace thimble;

namespace {

constexpr std::int64_t kRotarySequences = 2, kPositions = 5;

Matrix table_of(std::int64_t rows, std::int64_t d_key, std::int64_t first_position) {
  Matrix table(rows, 2 * d_key);
  kernels::rotary_table(table, first_position);
  return table;
}

// Returns column c of row r of x, rotated forward or backward (direction 1 or -1).
Wide turned(const Matrix& x, std::int64_t r, std::int64_t c, const kernels::RotaryColumns& columns,
            std::int64_t first_position, int direction) {
  if (c < columns.first || c >= columns.first + columns.count) return x(r, c);
  const std::int64_t in_head = (c - columns.first) % columns.d_key, even = c - in_head % 2;
  const Wide exponent = -Wide(in_head / 2 * 2) / static_cast<Wide>(columns.d_key);
  const Wide angle = static_cast<Wide>(first_position + r % kPositions) * std::pow(Wide{10000}, exponent);
  const std::complex<Wide> z =
      std::complex<Wide>(x(r, even), x(r, even + 1)) * std::polar(Wide{1}, direction * angle);
  return in_head % 2 == 0 ? z.real() : z.imag();
}

void check_rotary(std::int64_t cols, const kernels::RotaryColumns& columns, std::int64_t first_position,
                  std::int64_t gap) {
  CAPTURE(cols, columns.first, columns.count, columns.d_key, first_position, gap);
  const Matrix table = table_of(kPositions, columns.d_key, first_position);
  const Matrix x(kRotarySequences * kPositions, cols, 1, gap),
      dy(kRotarySequences * kPositions, cols, 2, gap);
  const Matrix before(kRotarySequences * kPositions, cols, 3, gap);
  Matrix y(kRotarySequences * kPositions, cols, 4, gap), dx = before;
  kernels::rotary_forward(y, x, table, columns);
  kernels::rotary_backward(dx, dy, table, columns);
  CHECK(worst_error(y, [&](auto r, auto c) { return turned(x, r, c, columns, first_position, 1); }) <
        kRounding / 10);
  CHECK(worst_error(dx, [&](auto r, auto c) {
          return before(r, c) + turned(dy, r, c, columns, first_position, -1);
        }) < kRounding / 10);
  CHECK((y.intact() && dx.intact()));
}

}  // namespace

TEST_CASE("pairs of columns turn by position and frequency, the others stay", "[kernels]") {
  for (const std::int64_t d_key : {2, 4, 6, 16, 20, 40}) {
    for (const std::int64_t heads : {1, 2, 3}) {
      for (const std::int64_t first : {0, 1, 17}) {
        for (const std::int64_t after : {0, 5}) {
          check_rotary(first + heads * d_key + after, {first, heads * d_key, d_key}, first == 1 ? 7 : 0,
                       after);
        }
      }
    }
  }
}

TEST_CASE("a turned query and key give a score that depends on their distance alone", "[kernels]") {
  constexpr std::int64_t kDepth = 16;
  const kernels::RotaryColumns columns{0, kDepth, kDepth};
  const Matrix q(1, kDepth, 1), k(1, kDepth, 2);
  const auto at = [&](const Matrix& x, std::int64_t position) {
    Matrix y(1, kDepth);
    kernels::rotary_forward(y, x, table_of(1, kDepth, position), columns);
    return y;
  };
  const auto score = [&](std::int64_t query, std::int64_t key) {
    const Matrix a = at(q, query), b = at(k, key);
    double sum = 0;
    for (std::int64_t c = 0; c < kDepth; ++c)
      sum += static_cast<double>(a(0, c)) * static_cast<double>(b(0, c));
    return sum;
  };
  for (const std::int64_t shift : {1, 10, 100})
    CHECK_THAT(score(5 + shift, 2 + shift), WithinAbs(score(5, 2), 10 * kRounding));
  CHECK(std::abs(score(5, 2) - score(2, 5)) > 0.1);
}

TEST_CASE("rotary's backward overwrites an empty sum", "[kernels]") {
  const kernels::RotaryColumns columns{3, 18, 6};
  const Matrix table = table_of(kPositions, 6, 2), dy(kRotarySequences * kPositions, 40, 1);
  Matrix zeros(kRotarySequences * kPositions, 40), empty(kRotarySequences * kPositions, 40);
  empty.fill(std::numeric_limits<Real>::quiet_NaN());
  kernels::rotary_backward(zeros, dy, table, columns);
  kernels::rotary_backward({empty.view(), true}, dy, table, columns);
  CHECK(worst_error(empty, [&](auto r, auto c) { return zeros(r, c); }) == 0);
}
