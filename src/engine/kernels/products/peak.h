// The fastest that a core can multiply and add.
#pragma once

#include <cstdint>

#include "thimble/engine/real.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Repeats x = a x + b on as many registers as hide its latency, without memory, and returns the FLOPs done, a
// multiply-add being two. `result` gets what was computed, so that it is not optimized away.
double multiply_adds(std::int64_t repetitions, Real& result);

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
