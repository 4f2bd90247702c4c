// The singular values of one matrix.
#pragma once

#include <vector>

#include "thimble/inspect/spectral.h"

namespace thimble {

// Returns the min(M, N) singular values of a (M, N), largest first.
inline std::vector<double> singular_values(const DoubleMatrix& a) {
  DoubleMatrix identity(a.cols, a.cols);
  for (std::int64_t i = 0; i < a.cols; ++i) identity(i, i) = 1;
  return singular_values_of_product(a, identity);
}

}  // namespace thimble
