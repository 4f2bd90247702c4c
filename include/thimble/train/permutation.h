// A pseudo-random order of 0 .. size-1, computed position by position, not stored.
#pragma once

#include <array>
#include <cstdint>

#include "thimble/engine/random.h"

namespace thimble {

// A Feistel network over the smallest even number of bits that covers `size`, applied again while the result
// falls outside (cycle walking; Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
class Permutation {
 public:
  // Requires size >= 1; every `key` gives another order.
  Permutation(std::uint64_t size, const Random& random, std::uint64_t key);

  // Returns the number at `position` < size.
  std::uint64_t operator()(std::uint64_t position) const;

 private:
  static constexpr std::uint32_t kRounds = 6;

  std::uint64_t size_;
  unsigned half_bits_;
  std::array<std::uint64_t, kRounds> round_keys_;
};

}  // namespace thimble
