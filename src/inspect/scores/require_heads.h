// The check that a model has attention heads.
#pragma once

#include "thimble/core/error.h"
#include "thimble/model/attention_layer.h"

namespace thimble {

// Throws ConfigError for a model without attention heads.
inline void require_heads(const ModelConfig& model) {
  const bool recurrent = model.kind == ModelKind::recurrent;
  require<ConfigError>(!attention_layers(model).empty(),
                       "inspect: a model with {} has no attention heads; `thimble eval` evaluates it",
                       recurrent ? "model.attention.score none" : "model.mixer convolution");
}

}  // namespace thimble
