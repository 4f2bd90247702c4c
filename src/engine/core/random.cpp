#include "thimble/engine/random.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

#include "engine/core/portable_math.h"

namespace thimble {

std::array<std::uint32_t, 4> Random::words(std::uint64_t a, std::uint32_t b, std::uint32_t c) const {
  using Philox = r123::Philox4x32;
  const auto k = key();
  const auto from = counter(a, b, c);
  const Philox::ctr_type out = Philox{}({{from[0], from[1], from[2], from[3]}}, {{k[0], k[1]}});
  return {out[0], out[1], out[2], out[3]};
}

std::array<std::uint32_t, 2> Random::key() const {
  return {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)};
}

std::array<std::uint32_t, 4> Random::counter(std::uint64_t a, std::uint32_t b, std::uint32_t c) const {
  return {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32), b,
          c | static_cast<std::uint32_t>(stream_) << 24};
}

namespace {

std::uint64_t join(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32 | low; }

__extension__ using Wide = unsigned __int128;

double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

double Random::uniform(std::uint64_t a, std::uint32_t b, std::uint32_t c) const {
  const auto w = words(a, b, c);
  return unit(join(w[0], w[1]));
}

double Random::normal(std::uint64_t a, std::uint32_t b, std::uint32_t c) const {
  const auto w = words(a, b, c);
  const double radius = std::sqrt(-2 * portable::log(1 - unit(join(w[0], w[1]))));
  return radius * portable::cos(2 * std::numbers::pi * unit(join(w[2], w[3])));
}

std::uint64_t Random::below(std::uint64_t n, std::uint64_t a, std::uint32_t b, std::uint32_t c) const {
  const auto w = words(a, b, c);
  return static_cast<std::uint64_t>(Wide{join(w[0], w[1])} * n >> 64);
}

}  // namespace thimble
