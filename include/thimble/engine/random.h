// Random numbers as a pure function of a key and a counter (Philox4x32-10; Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). There is no state to advance, save or share between threads.
#pragma once

#include <array>
#include <cstdint>

namespace thimble {

// The purpose of a draw. Streams never overlap, whatever the counters.
enum class Stream : std::uint32_t { init, data, order, dropout, gradcheck, inspect, split, sample };

// A random number generator: a key, and functions of a counter (a, b, c). c shares a word with the stream, so
// c < 2^24.
class Random {
 public:
  Random(std::uint64_t seed, Stream stream) : seed_(seed), stream_(stream) {}

  // Returns four independent 32-bit words.
  std::array<std::uint32_t, 4> words(std::uint64_t a, std::uint32_t b, std::uint32_t c) const;
  // Return what Philox computes them from, for kernels that draw many: its key, and its counter, whose word 2 is b.
  std::array<std::uint32_t, 2> key() const;
  std::array<std::uint32_t, 4> counter(std::uint64_t a, std::uint32_t b, std::uint32_t c) const;

  // Returns a number that is uniform in [0, 1), with 53 random bits.
  double uniform(std::uint64_t a, std::uint32_t b = 0, std::uint32_t c = 0) const;

  // Returns a standard normal number (Box-Muller).
  double normal(std::uint64_t a, std::uint32_t b = 0, std::uint32_t c = 0) const;

  // Returns an integer that is uniform in {0, ..., n-1}, n >= 1; the bias of the multiply-shift is below n /
  // 2^64.
  std::uint64_t below(std::uint64_t n, std::uint64_t a, std::uint32_t b = 0, std::uint32_t c = 0) const;

 private:
  std::uint64_t seed_;
  Stream stream_;
};

}  // namespace thimble
