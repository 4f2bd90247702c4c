// What has no heads cannot be inspected.
#pragma once

#include "thimble/core/error.h"
#include "thimble/model/attention_layer.h"

namespace thimble {

inline void require_heads(const ModelConfig& model) {
  const bool recurrent = model.kind == ModelKind::recurrent;
  require<ConfigError>(
      !attention_layers(model).empty(),
      "inspect: a model with {} has no attention heads to look into; `thimble eval` measures "
      "it",
      recurrent ? "model.attention.score none" : "model.mixer convolution");
}

}  // namespace thimble
