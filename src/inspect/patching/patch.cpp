#include "thimble/inspect/patch.h"

#include "inspect/patching/patching.h"
#include "inspect/scores/require_heads.h"
#include "thimble/train/run.h"
#include "train/config/with_precision.h"

namespace thimble {

PatchingReport patch(const ModelSource& model, std::int64_t clean, std::int64_t corrupted) {
  require_heads(model.config.model);
  return with_precision(model.config, [&]<class R>() { return run_patching<R>(model, clean, corrupted); });
}

PatchingReport patch_pairs(const ModelSource& model, std::int64_t pairs) {
  require_heads(model.config.model);
  return with_precision(model.config, [&]<class R>() { return run_patching_pairs<R>(model, pairs); });
}

EdgesReport patch_edges(const ModelSource& model, std::int64_t pairs) {
  require_heads(model.config.model);
  return with_precision(model.config, [&]<class R>() { return run_edges<R>(model, pairs); });
}

}  // namespace thimble
