// Measures the edges of a model; see edges.h.
#pragma once

#include "inspect/patching/pairs.h"
#include "thimble/inspect/edges.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

inline constexpr double kCircuitKeeps = 0.9;         // of the logit difference
inline constexpr std::int64_t kRandomCircuits = 20;  // of the size of the circuit, for comparison
inline constexpr std::int64_t kTriedSets = 200;      // at most, for completeness

// Measures every edge on all pairs, on clean inputs, exactly and by edge attribution patching, and finds a circuit that keeps
// the share `keep`. The pairs of `choosing` give the order: starting from all edges, tries to remove one after the other, the
// least effect first, and again until none can be removed (after Conmy et al., "Towards automated circuit discovery", 2023);
// the rest follow by their effect. On the pairs of `measuring`, others, edges are removed in this order, down to the last
// circuit before the first one for whose share the interval begins below `keep`; of a single pair the share itself counts.
// Random draws depend on the seed. Throws ConfigError for a model that is not an encoder with attention, and as patch_effects
// and PairRunner::differences do.
EdgesReport measure_edges(PairRunner& all, PairRunner& choosing, PairRunner& measuring, std::uint64_t seed,
                          double keep = kCircuitKeeps);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
