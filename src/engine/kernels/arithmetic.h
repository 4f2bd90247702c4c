// How the instructions that the kernels use on this CPU round a product that is added to a sum.
#pragma once

#include <string_view>

#include "thimble/engine/real.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// Returns "fused" where a x + b is rounded once, as on AVX2, AVX-512 and NEON, or "separate" where the product
// is rounded too. CPUs of the same arithmetic compute the same bits.
std::string_view arithmetic();

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
