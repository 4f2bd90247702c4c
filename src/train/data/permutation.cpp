#include "thimble/train/permutation.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace thimble {
namespace {

// The output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace

Permutation::Permutation(std::uint64_t size, const Random& random, std::uint64_t key) : size_(size) {
  // Halves of fewer than three bits leave a network too few orders to choose from.
  half_bits_ = std::max(3U, (static_cast<unsigned>(std::bit_width(size - 1)) + 1) / 2);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const auto words = random.words(key, round, 0);
    round_keys_[round] = std::uint64_t{words[1]} << 32 | words[0];
  }
}

std::uint64_t Permutation::operator()(std::uint64_t position) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = position >> half_bits_, right = position & mask;
    for (const std::uint64_t round_key : round_keys_)
      left = std::exchange(right, left ^ (scramble(right ^ round_key) & mask));
    position = left << half_bits_ | right;
  } while (position >= size_);
  return position;
}

}  // namespace thimble
