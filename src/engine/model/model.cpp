#include "thimble/engine/model.h"

#include <algorithm>

#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Model::Model(const ModelConfig& config, const ModelSizes& sizes, Storage storage)
    : config_(config), sizes_(sizes), store_(storage), attention_layers_(thimble::attention_layers(config)) {
  sizes_.length = std::max(sizes.length, config.trained_length);
  sizes_.source_length = std::max(sizes.source_length, config.trained_source_length);
  if (config.max_length == 0) return;
  sizes_.length = config.max_length;
  if (sizes_.source_length > 0) sizes_.source_length = config.max_length;
}

Site Model::input_site(std::size_t) const { throw Error("model: a recurrent model has no blocks"); }

Var Model::from_block(std::size_t, Var, Var, const ModelInput&, const ForwardOptions&) const {
  throw Error("model: a recurrent model has no blocks");
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
