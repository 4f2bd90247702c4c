// Matrices of normal numbers.
#pragma once

#include "thimble/engine/random.h"
#include "thimble/inspect/spectral.h"

namespace thimble {

inline DoubleMatrix random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  DoubleMatrix m(rows, cols);
  const Random random(seed, Stream::gradcheck);
  for (std::size_t i = 0; i < m.values.size(); ++i) m.values[i] = random.normal(i);
  return m;
}

}  // namespace thimble
