// One-to-one matching.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/inspect/spectral.h"

namespace thimble {

// Returns for each row of the gains a column of its own, or -1, such that as many rows as possible have one
// and the sum of their gains is the largest. Gains must be finite. Hungarian method with shortest augmenting
// paths (Kuhn 1955; Jonker and Volgenant 1987), in O(n² m) for n <= m rows and columns.
std::vector<std::int64_t> assign(const DoubleMatrix& gains);

}  // namespace thimble
