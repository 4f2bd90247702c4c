// The check that a model has attention heads whose weights are a distribution.
#pragma once

#include "thimble/engine/attention_layer.h"
#include "thimble/engine/error.h"

namespace thimble {

// Throws ConfigError for a model without attention heads, or with a score without a softmax.
inline void require_heads(const ModelConfig& model) {
  const bool recurrent = model.kind == ModelKind::recurrent;
  require<ConfigError>(!attention_layers(model).empty(),
                       "inspect: a model with {} has no attention heads; `thimble eval` evaluates it",
                       recurrent ? "model.attention.score none" : "model.mixer convolution");
  require<ConfigError>(
      kind_of(model.attention.score).softmax,
      "inspect: scores of heads require attention weights that sum to 1, which model.attention.score {} has not; `thimble eval` evaluates it",
      kind_of(model.attention.score).name);
}

}  // namespace thimble
