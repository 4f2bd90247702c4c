// Activation and path patching of a model on test sequences.
#pragma once

#include <cstdint>

#include "thimble/inspect/edges.h"
#include "thimble/inspect/patching_report.h"

namespace thimble {

struct ModelSource;

inline constexpr std::int64_t kUsualPairs = 100;
inline constexpr std::int64_t kCandidates = 1000;  // test sequences that pairs are drawn from, at least

// The functions below require heads (ConfigError) and weights that match the config (CheckpointError).

// Patches the heads of one pair of test sequences. Throws DataError when there is no such sequence, when
// lengths or the positions of labels differ, or when all labels are equal.
PatchingReport patch(const ModelSource& model, std::int64_t clean, std::int64_t corrupted);

// Patches the heads of at most that many pairs of test sequences. Throws DataError when there is none.
PatchingReport patch_pairs(const ModelSource& model, std::int64_t pairs = kUsualPairs);

// Measures the edges of an encoder on at most that many pairs of test sequences. Throws DataError when there is
// none, and ConfigError for another kind of model.
EdgesReport patch_edges(const ModelSource& model, std::int64_t pairs = kUsualPairs);

}  // namespace thimble
