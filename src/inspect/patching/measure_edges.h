// Measures the edges of a model; see edges.h.
#pragma once

#include <vector>

#include "inspect/patching/pairs.h"
#include "thimble/inspect/edges.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

inline constexpr double kCircuitKeeps = 0.9;         // of the logit difference
inline constexpr std::int64_t kRandomCircuits = 20;  // of the size of the circuit, for comparison

// Measures every edge, on clean inputs, exactly and by edge attribution patching, and finds a circuit that
// keeps the share `keep`: starting from all edges, tries to remove one after the other, the least effect
// first, and again until none can be removed (after Conmy et al., "Towards automated circuit discovery",
// 2023). Random draws depend on the seed. Throws ConfigError for a model that is not an encoder with
// attention, and as patch_effects and PairRunner::differences do.
EdgesReport measure_edges(PairRunner& runner, std::uint64_t seed, double keep = kCircuitKeeps);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
