// Dropout.
//   forward    y = x f,  f = 0 with probability p, else 1 / (1 - p)
//   backward   dx += dy f
//   saved: f. This file draws f; mul_forward() and mul_backward() apply it.
#include "engine/kernels/dropout.h"

#include <algorithm>
#include <cmath>

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

void sample_dropout_factors(Real* factor, Real p, const DropoutKey& key, std::int64_t sample,
                            std::int64_t first, std::int64_t count) {
  const Real kept = 1 / (1 - p);
  const auto threshold = static_cast<std::uint64_t>(std::llround(static_cast<double>(p) * 0x1p32));
  const std::uint64_t counter =
      std::uint64_t{key.step} << 32 | (key.first_sample + static_cast<std::uint32_t>(sample));
  for (std::int64_t i = first / 4 * 4; i < first + count; i += 4) {
    const auto words = key.random.words(counter, static_cast<std::uint32_t>(i / 4), key.site);
    for (std::int64_t j = std::max(i, first); j < std::min(i + 4, first + count); ++j)
      factor[j - first] = words[static_cast<std::size_t>(j - i)] < threshold ? Real{0} : kept;
  }
}

void dropout_factors(MatrixView factor, Real p, const DropoutKey& key, std::int64_t rows_per_sample) {
  for (std::int64_t sample = 0; sample * rows_per_sample < factor.rows; ++sample)
    sample_dropout_factors(factor.row(sample * rows_per_sample), p, key, sample, 0,
                           rows_per_sample * factor.cols);
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
