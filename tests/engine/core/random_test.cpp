#include "thimble/engine/random.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "catch.h"

using namespace thimble;

namespace {

using FourWords = std::array<std::uint32_t, 4>;

struct Moments {
  double mean = 0, variance = 0, fourth = 0;
};

template <class Draw>
Moments moments(std::uint64_t n, const Draw& draw) {
  Moments m;
  for (std::uint64_t i = 0; i < n; ++i) m.mean += draw(i) / static_cast<double>(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    const double square = std::pow(draw(i) - m.mean, 2);
    m.variance += square / static_cast<double>(n);
    m.fourth += square * square / static_cast<double>(n);
  }
  return m;
}

}  // namespace

TEST_CASE("words are Philox4x32-10: the known answers of Random123", "[core]") {
  CHECK(Random(0, Stream::init).words(0, 0, 0) == FourWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Random(~std::uint64_t{0}, static_cast<Stream>(0xff)).words(~std::uint64_t{0}, 0xffffffff, 0xffffff) ==
        FourWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  static_assert(static_cast<int>(Stream::dropout) == 3);
  CHECK(Random(0x299f31d0a4093822, Stream::dropout).words(0x85a308d3243f6a88, 0x13198a2e, 0x707344) ==
        FourWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("every part of key and counter matters, and nothing else", "[core]") {
  std::set<FourWords> seen;
  for (std::uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (Stream stream :
         {Stream::init, Stream::data, Stream::order, Stream::dropout, Stream::gradcheck, Stream::inspect}) {
      for (std::uint64_t a : {0ull, 1ull, 1ull << 32}) {
        for (std::uint32_t b : {0u, 1u}) {
          for (std::uint32_t c : {0u, 1u, (1u << 24) - 1}) {
            const FourWords words = Random(seed, stream).words(a, b, c);
            CHECK(words == Random(seed, stream).words(a, b, c));
            CHECK(seen.insert(words).second);
          }
        }
      }
    }
  }
}

TEST_CASE("uniform numbers lie in [0, 1) on a grid of 2^-53, evenly", "[core]") {
  const Random random(7, Stream::data);
  constexpr std::uint64_t kDraws = 200000;
  std::vector<std::uint64_t> counts(16);
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double u = random.uniform(i);
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    const double scaled = u * 0x1p53;
    REQUIRE(scaled == std::floor(scaled));
    ++counts[static_cast<std::size_t>(u * 16)];
  }
  const Moments m = moments(kDraws, [&](std::uint64_t i) { return random.uniform(i); });
  CHECK_THAT(m.mean, WithinAbs(0.5, 4 * std::sqrt(1.0 / 12 / kDraws)));
  CHECK_THAT(m.variance, WithinAbs(1.0 / 12, 4 * std::sqrt(1.0 / 180 / kDraws)));
  double chi_squared = 0;  // 15 degrees of freedom: above 44.3 once in 10,000
  for (std::uint64_t count : counts) {
    chi_squared += std::pow(static_cast<double>(count) - kDraws / 16.0, 2) / (kDraws / 16.0);
  }
  CHECK(chi_squared < 44.3);
}

TEST_CASE("normal numbers have the moments of a standard normal", "[core]") {
  const Random random(8, Stream::init);
  constexpr std::uint64_t kDraws = 200000;
  const Moments m = moments(kDraws, [&](std::uint64_t i) { return random.normal(i, 3); });
  CHECK_THAT(m.mean, WithinAbs(0, 4 / std::sqrt(kDraws)));
  CHECK_THAT(m.variance, WithinAbs(1, 4 * std::sqrt(2.0 / kDraws)));
  CHECK_THAT(m.fourth, WithinAbs(3, 4 * std::sqrt(96.0 / kDraws)));
}

TEST_CASE("below(n) reaches 0 .. n-1 evenly and nothing beyond", "[core]") {
  const Random random(9, Stream::order);
  constexpr std::uint64_t kDraws = 100000, kSides = 10;
  std::vector<std::uint64_t> counts(kSides);
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    REQUIRE(random.below(1, i) == 0);
    REQUIRE(random.below(2, i) < 2);
    const std::uint64_t side = random.below(kSides, i);
    REQUIRE(side < kSides);
    ++counts[side];
  }
  double chi_squared = 0;  // 9 degrees of freedom: above 33.7 once in 10,000
  for (std::uint64_t count : counts) {
    chi_squared += std::pow(static_cast<double>(count) - kDraws / 10.0, 2) / (kDraws / 10.0);
  }
  CHECK(chi_squared < 33.7);
}

TEST_CASE("below(n) holds for the largest n", "[core]") {
  const Random random(10, Stream::order);
  constexpr std::uint64_t kMaxValue = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    REQUIRE(random.below(kMaxValue, i) < kMaxValue);
    most = std::max(most, random.below(kMaxValue, i));
  }
  CHECK(most > kMaxValue / 100 * 99);
}
