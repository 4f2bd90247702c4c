// What has no heads cannot be inspected.
#pragma once

#include "thimble/core/error.h"
#include "thimble/model/model_config.h"

namespace thimble {

inline void require_heads(const ModelConfig& model) {
  require<ConfigError>(model.kind != ModelKind::recurrent,
                       "inspect: a model with model.kind recurrent has no attention heads to look into; "
                       "`thimble eval` measures it");
  require<ConfigError>(model.mixer == Mixer::attention,
                       "inspect: a model with model.mixer convolution has no attention heads to look into; "
                       "`thimble eval` measures it");
}

}  // namespace thimble
