#include "engine/kernels/dropout.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "catch.h"
#include "engine/kernels/matrix.h"

using namespace thimble;

namespace {

constexpr std::int64_t kSamples = 6, kRows = 5, kCols = 7;  // 35 numbers per sample: no multiple of four

kernels::DropoutKey key_of(std::uint32_t step = 2, std::uint32_t first_sample = 0, std::uint32_t site = 3,
                           std::uint64_t seed = 1) {
  return {Random(seed, Stream::dropout), step, first_sample, site};
}

Matrix factors(const kernels::DropoutKey& key, std::int64_t samples = kSamples, std::int64_t rows = kRows,
               std::int64_t cols = kCols, Real p = Real(0.5)) {
  Matrix result(samples * rows, cols, 9);
  kernels::dropout_factors(result, p, key, rows);
  return result;
}

bool same(const Matrix& a, const Matrix& b) {
  return worst_error(a, [&](auto r, auto c) { return b(r, c); }) == 0;
}

double share_kept(const Matrix& m) {
  double kept = 0;
  for (std::int64_t r = 0; r < m.rows(); ++r) {
    for (std::int64_t c = 0; c < m.cols(); ++c) kept += m(r, c) != 0;
  }
  return kept / static_cast<double>(m.rows() * m.cols());
}

}  // namespace

TEST_CASE("dropout keeps its share and scales it up", "[kernels]") {
  for (const Real p : {Real(0.1), Real(0.5), Real(0.9)}) {
    CAPTURE(p);
    const Matrix m = factors(key_of(), 40, 25, 100, p);
    const double share = 1 - static_cast<double>(p);
    CHECK_THAT(share_kept(m), WithinAbs(share, 4 * std::sqrt(share * (1 - share) / 1e5)));
    for (std::int64_t r = 0; r < m.rows(); ++r) {
      for (std::int64_t c = 0; c < m.cols(); ++c) REQUIRE((m(r, c) == 0 || m(r, c) == 1 / (1 - p)));
    }
  }
  CHECK(share_kept(factors(key_of(), 4, 5, 100, 0)) == 1);
  CHECK(factors(key_of(), 1, 1, 1, 0)(0, 0) == 1);
}

TEST_CASE("an element is drawn from its word of its counter, wherever drawing begins", "[kernels]") {
  const kernels::DropoutKey key = key_of(0xFFFFFFFF, 0xFFFFFFF0, 3, 0x123456789ABCDEF0);
  constexpr Real kShare = Real(0.3);
  const auto threshold = static_cast<std::uint64_t>(std::llround(static_cast<double>(kShare) * 0x1p32));
  std::vector<Real> found(200);
  for (const std::int64_t sample : {0, 7})
    for (const std::int64_t first : {0, 1, 2, 3, 4, 61, 1000})
      for (const std::int64_t count : {1, 2, 5, 64, 200}) {
        CAPTURE(sample, first, count);
        std::ranges::fill(found, Real(9));
        kernels::sample_dropout_factors(found.data(), kShare, key, sample, first, count);
        for (std::int64_t i = 0; i < std::ssize(found); ++i) {
          const std::int64_t at = first + i;
          const std::uint64_t counter =
              std::uint64_t{key.step} << 32 | (key.first_sample + static_cast<std::uint32_t>(sample));
          const auto words = key.random.words(counter, static_cast<std::uint32_t>(at / 4), key.site);
          const bool is_dropped = words[static_cast<std::size_t>(at % 4)] < threshold;
          REQUIRE(found[static_cast<std::size_t>(i)] == (i >= count   ? Real(9)
                                                         : is_dropped ? 0
                                                                      : 1 / (1 - kShare)));
        }
      }
}

TEST_CASE("a mask does not depend on how a batch is cut", "[kernels]") {
  const Matrix whole = factors(key_of());
  for (std::int64_t first = 0; first < kSamples; ++first) {
    for (std::int64_t count = 1; first + count <= kSamples; ++count) {
      CAPTURE(first, count);
      const Matrix part = factors(key_of(2, static_cast<std::uint32_t>(first)), count);
      CHECK(worst_error(part, [&](auto r, auto c) { return whole(first * kRows + r, c); }) == 0);
    }
  }
}

TEST_CASE("step, sample, site and seed each give masks of their own", "[kernels]") {
  const Matrix m = factors(key_of());
  CHECK(same(m, factors(key_of())));
  CHECK_FALSE(same(m, factors(key_of(3))));
  CHECK_FALSE(same(m, factors(key_of(2, 1))));
  CHECK_FALSE(same(m, factors(key_of(2, 0, 4))));
  CHECK_FALSE(same(m, factors(key_of(2, 0, 3, 2))));
  for (std::int64_t a = 0; a < kSamples; ++a) {
    for (std::int64_t b = 0; b < a; ++b) {
      CAPTURE(a, b);
      const Matrix first = factors(key_of(2, static_cast<std::uint32_t>(a)), 1),
                   second = factors(key_of(2, static_cast<std::uint32_t>(b)), 1);
      CHECK_FALSE(same(first, second));
    }
  }
}

TEST_CASE("elements of a mask are independent of their neighbors", "[kernels]") {
  const Matrix m = factors(key_of(), 100, 10, 100);
  for (const std::int64_t distance : {1, 2, 4, 50}) {
    double both = 0, pairs = 0;
    for (std::int64_t r = 0; r < m.rows(); ++r) {
      for (std::int64_t c = 0; c + distance < m.cols(); ++c, ++pairs)
        both += m(r, c) != 0 && m(r, c + distance) != 0;
    }
    CAPTURE(distance);
    CHECK_THAT(both / pairs, WithinAbs(0.25, 4 * std::sqrt(0.25 * 0.75 / pairs)));
  }
}
