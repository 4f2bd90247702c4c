// Rotary positions against their definition: pairs or halves of columns as complex numbers, times e^(i angle).
#include "engine/kernels/attention/rotary.h"

#include <hwy/targets.h>

#include <complex>

#include "catch.h"
#include "engine/kernels/matrix.h"

using namespace thimble;

namespace {

constexpr std::int64_t kRotarySequences = 2, kPositions = 5;
constexpr RotaryConfig kHalves{.layout = RotaryPairs::halves, .base = 500};

Matrix table_of(std::int64_t rows, std::int64_t d_key, std::int64_t first_position,
                const RotaryConfig& config) {
  Matrix table(rows, 2 * d_key);
  kernels::rotary_table(table, first_position, config);
  return table;
}

// Returns column c of row r of x, rotated forward or backward (direction 1 or -1).
Wide turned(const Matrix& x, std::int64_t r, std::int64_t c, const kernels::RotaryColumns& columns,
            std::int64_t first_position, const RotaryConfig& config, int direction) {
  if (c < columns.first || c >= columns.first + columns.count) return x(r, c);
  const std::int64_t in_head = (c - columns.first) % columns.d_key, half = columns.d_key / 2;
  const bool halves = config.layout == RotaryPairs::halves;
  const std::int64_t pair = halves ? in_head % half : in_head / 2, distance = halves ? half : 1;
  const bool is_second = halves ? in_head >= half : in_head % 2 == 1;
  const std::int64_t real = is_second ? c - distance : c;
  const Wide angle =
      static_cast<Wide>(first_position + r % kPositions) *
      std::pow(static_cast<Wide>(config.base), -Wide(2 * pair) / static_cast<Wide>(columns.d_key));
  const std::complex<Wide> z =
      std::complex<Wide>(x(r, real), x(r, real + distance)) * std::polar(Wide{1}, direction * angle);
  return is_second ? z.imag() : z.real();
}

void check_rotary(std::int64_t cols, kernels::RotaryColumns columns, std::int64_t first_position,
                  const RotaryConfig& config, std::int64_t gap) {
  CAPTURE(cols, columns.first, columns.count, columns.d_key, first_position, config.base, gap);
  columns.layout = config.layout;
  const Matrix table = table_of(kPositions, columns.d_key, first_position, config);
  const Matrix x(kRotarySequences * kPositions, cols, 1, gap),
      dy(kRotarySequences * kPositions, cols, 2, gap);
  const Matrix before(kRotarySequences * kPositions, cols, 3, gap);
  Matrix y(kRotarySequences * kPositions, cols, 4, gap), dx = before;
  kernels::rotary_forward(y, x, table, columns);
  kernels::rotary_backward(dx, dy, table, columns);
  CHECK(worst_error(y, [&](auto r, auto c) { return turned(x, r, c, columns, first_position, config, 1); }) <
        kRounding / 10);
  CHECK(worst_error(dx, [&](auto r, auto c) {
          return before(r, c) + turned(dy, r, c, columns, first_position, config, -1);
        }) < kRounding / 10);
  CHECK((y.intact() && dx.intact()));
}

}  // namespace

TEST_CASE("pairs of columns turn by position and frequency, the others stay", "[kernels]") {
  for (const std::int64_t d_key : {2, 4, 6, 16, 20, 40}) {
    for (const std::int64_t heads : {1, 2, 3}) {
      for (const std::int64_t first : {0, 1, 17}) {
        for (const std::int64_t after : {0, 5}) {
          for (const RotaryConfig& config : {RotaryConfig(), kHalves})
            check_rotary(first + heads * d_key + after, {first, heads * d_key, d_key}, first == 1 ? 7 : 0,
                         config, after);
        }
      }
    }
  }
}

TEST_CASE("a turned query and key give a score that depends on their distance alone", "[kernels]") {
  constexpr std::int64_t kDepth = 16;
  const RotaryConfig config = GENERATE(RotaryConfig(), kHalves);
  const kernels::RotaryColumns columns{0, kDepth, kDepth, config.layout};
  const Matrix q(1, kDepth, 1), k(1, kDepth, 2);
  const auto at = [&](const Matrix& x, std::int64_t position) {
    Matrix y(1, kDepth);
    kernels::rotary_forward(y, x, table_of(1, kDepth, position, config), columns);
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
  const RotaryConfig config = GENERATE(RotaryConfig(), kHalves);
  const kernels::RotaryColumns columns{3, 18, 6, config.layout};
  const Matrix table = table_of(kPositions, 6, 2, config), dy(kRotarySequences * kPositions, 40, 1);
  Matrix zeros(kRotarySequences * kPositions, 40), empty(kRotarySequences * kPositions, 40);
  empty.fill(std::numeric_limits<Real>::quiet_NaN());
  kernels::rotary_backward(zeros, dy, table, columns);
  kernels::rotary_backward({empty.view(), true}, dy, table, columns);
  CHECK(worst_error(empty, [&](auto r, auto c) { return zeros(r, c); }) == 0);
}

TEST_CASE("on every target, halves have the bits of pairs of the same columns", "[kernels]") {
  constexpr std::int64_t kRows = 10, kFirst = 3, kHeads = 2, kAfter = 2;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::GetChosenTarget().Update(target);
    for (const std::int64_t d_key : {2, 6, 16, 38, 40}) {
      CAPTURE(hwy::TargetName(target), d_key);
      const std::int64_t half = d_key / 2, cols = kFirst + kHeads * d_key + kAfter;
      // Returns the column that pairs have in place of column c of halves.
      const auto in_pairs = [&](std::int64_t c) {
        if (c < kFirst || c >= cols - kAfter) return c;
        const std::int64_t i = (c - kFirst) % d_key;
        return c - i + i % half * 2 + i / half;
      };
      const Matrix x(kRows, cols, 1);
      Matrix halves(kRows, cols);
      for (std::int64_t r = 0; r < kRows; ++r)
        for (std::int64_t c = 0; c < cols; ++c) halves(r, c) = x(r, in_pairs(c));
      // Returns x rotated forward, and backward.
      const auto rotated = [&](const Matrix& from, RotaryPairs layout) {
        const kernels::RotaryColumns columns{kFirst, kHeads * d_key, d_key, layout};
        const Matrix table = table_of(5, d_key, 4, {.layout = layout, .base = 500});
        std::pair<Matrix, Matrix> out{Matrix(kRows, cols), Matrix(kRows, cols)};
        kernels::rotary_forward(out.first, from, table, columns);
        kernels::rotary_backward(out.second, from, table, columns);
        return out;
      };
      const auto ours = rotated(halves, RotaryPairs::halves), theirs = rotated(x, RotaryPairs::pairs);
      CHECK(worst_error(ours.first, [&](auto r, auto c) { return theirs.first(r, in_pairs(c)); }) == 0);
      CHECK(worst_error(ours.second, [&](auto r, auto c) { return theirs.second(r, in_pairs(c)); }) == 0);
    }
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}
