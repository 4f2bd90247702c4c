#include "thimble/data/task.h"

#include <cmath>

namespace thimble {

std::int64_t Draws::below(std::int64_t n) {
  const std::uint32_t half = next_ % 2 * 2;
  if (half == 0) words_ = random_.words(index_, next_ / 2, lane_);
  ++next_;
  // The top 64 bits of (a 64-bit word) * n, without a 128-bit type.
  const auto factor = static_cast<std::uint64_t>(n);
  const std::uint64_t low = words_[half] * factor;
  return static_cast<std::int64_t>((words_[half + 1] * factor + (low >> 32)) >> 32);
}

void sample_symbols(const TaskConfig& config, Draws& draws, std::vector<std::int32_t>& out) {
  const bool varies = config.min_length > 0 && config.min_length < config.length;
  const std::int64_t shortest = varies ? config.min_length : config.length;
  out.resize(
      static_cast<std::size_t>(varies ? shortest + draws.below(config.length - shortest + 1) : shortest));
  for (std::int32_t& token : out) token = static_cast<std::int32_t>(draws.below(config.symbols));
}

double count_symbol_sequences(const TaskConfig& config) {
  double count = 0;
  for (std::int64_t n = config.min_length > 0 ? config.min_length : config.length; n <= config.length; ++n)
    count += std::pow(static_cast<double>(config.symbols), static_cast<double>(n));
  return count;
}

}  // namespace thimble
