// Compiled once: checks the model and calls the code of its precision.
#include "thimble/inspect/patch.h"

#include <algorithm>
#include <limits>

#include "inspect/scores/require_heads.h"
#include "thimble/engine/error.h"
#include "thimble/train/dataset.h"
#include "thimble/train/listing.h"
#include "thimble/train/run.h"

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

// Checks the model and returns whether it computes in single precision.
bool checked_single(const ModelSource& model) {
  require_heads(model.config.model);
  return model.config.train.precision == Precision::float32;
}

}  // namespace

PatchingReport patch(const ModelSource& model, std::int64_t clean, std::int64_t corrupted) {
  return checked_single(model) ? f32::run_patching(model, clean, corrupted)
                               : f64::run_patching(model, clean, corrupted);
}

PatchingReport patch_pairs(const ModelSource& model, std::int64_t pairs) {
  return checked_single(model) ? f32::run_patching_pairs(model, pairs)
                               : f64::run_patching_pairs(model, pairs);
}

EdgesReport patch_edges(const ModelSource& model, std::int64_t pairs) {
  return checked_single(model) ? f32::run_edges(model, pairs) : f64::run_edges(model, pairs);
}

}  // namespace thimble
