// Compiled once: checks the model and calls the code of its precision.
#include "thimble/inspect/patch.h"

#include <algorithm>
#include <limits>

#include "inspect/effects/effect_memory.h"
#include "inspect/scores/require_heads.h"
#include "thimble/engine/error.h"
#include "thimble/train/dataset.h"
#include "thimble/train/listing.h"

namespace thimble {

#define THIMBLE_PATCHES                                                                              \
  PatchingReport run_patching(const ModelSource& model, std::int64_t clean, std::int64_t corrupted); \
  PatchingReport run_patching_pairs(const ModelSource& model, std::int64_t pairs);                   \
  EdgesReport run_edges(const ModelSource& model, std::int64_t pairs);

inline namespace f32 {
THIMBLE_PATCHES
}
namespace f64 {
THIMBLE_PATCHES
}

namespace {

// Returns how many of the first sequences the test split has.
std::int64_t test_sequences(const Config& config, std::int64_t sequences) {
  const Dataset data(config.task, config.data, layout_of(config.model), config.train.seed);
  return std::min(sequences, data.size(Split::test));
}

// Checks the model and returns whether it computes in single precision.
bool checked_single(const ModelSource& model, std::int64_t sequences) {
  require_heads(model.config.model);
  require_memory(effects_memory(model.config, test_sequences(model.config, sequences)));
  return model.config.train.precision == Precision::float32;
}

}  // namespace

PatchingReport patch(const ModelSource& model, std::int64_t clean, std::int64_t corrupted) {
  const bool single = checked_single(model, std::max({clean, corrupted, std::int64_t{2}}));
  return single ? f32::run_patching(model, clean, corrupted) : f64::run_patching(model, clean, corrupted);
}

PatchingReport patch_pairs(const ModelSource& model, std::int64_t pairs) {
  return checked_single(model, std::max(pairs, kCandidates)) ? f32::run_patching_pairs(model, pairs)
                                                             : f64::run_patching_pairs(model, pairs);
}

EdgesReport patch_edges(const ModelSource& model, std::int64_t pairs) {
  return checked_single(model, std::max(pairs, kCandidates)) ? f32::run_edges(model, pairs)
                                                             : f64::run_edges(model, pairs);
}

}  // namespace thimble
