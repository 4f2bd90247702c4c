// Dropout.
//   forward    y = x f,  f = 0 with probability p, else 1 / (1 - p)
//   backward   dx += dy f
//   saved: f. This file draws f; mul_forward() and mul_backward() apply it.
#include "thimble/kernels/dropout.h"

#include <cmath>

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

void dropout_factors(MatrixView factor, Real p, const DropoutKey& key, std::int64_t rows_per_sample) {
  const Real kept = 1 / (1 - p);
  const auto threshold = static_cast<std::uint64_t>(std::llround(static_cast<double>(p) * 0x1p32));
  const std::int64_t sample_size = rows_per_sample * factor.cols;
  for (std::int64_t sample = 0; sample * rows_per_sample < factor.rows; ++sample) {
    Real* to = factor.row(sample * rows_per_sample);
    const std::uint64_t counter =
        std::uint64_t{key.step} << 32 | (key.first_sample + static_cast<std::uint32_t>(sample));
    for (std::int64_t i = 0; i < sample_size; i += 4) {
      const auto words = key.random.words(counter, static_cast<std::uint32_t>(i / 4), key.site);
      for (std::int64_t j = 0; j < 4 && i + j < sample_size; ++j) {
        to[i + j] = words[static_cast<std::size_t>(j)] < threshold ? Real{0} : kept;
      }
    }
  }
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
