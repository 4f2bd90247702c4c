// Inverted dropout (Srivastava et al. 2014): training scales the kept elements up, so evaluation needs no
// correction.
#pragma once

#include <cstdint>

#include "thimble/engine/dropout_key.h"
#include "thimble/engine/matrix_view.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Draws factor = 0 with probability p, else 1 / (1 - p). The rows belong to consecutive samples,
// `rows_per_sample` each.
void dropout_factors(MatrixView factor, Real p, const DropoutKey& key, std::int64_t rows_per_sample);

// Draws the factors of elements first .. first + count - 1 of one sample of the batch.
void sample_dropout_factors(Real* factor, Real p, const DropoutKey& key, std::int64_t sample,
                            std::int64_t first, std::int64_t count);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
