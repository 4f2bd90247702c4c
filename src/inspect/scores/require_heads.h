// The checks that a model has attention heads, and that their weights are a distribution.
#pragma once

#include "thimble/engine/attention_layer.h"
#include "thimble/engine/error.h"

namespace thimble {

// Throws ConfigError for a model without attention heads.
inline void require_heads(const ModelConfig& model) {
  const bool recurrent = model.kind == ModelKind::recurrent;
  require<ConfigError>(!attention_layers(model).empty(),
                       "a model with {} has no attention heads; `thimble eval` evaluates it",
                       recurrent ? "model.attention.score none" : "model.mixer convolution");
}

// Throws ConfigError for such a model, too, and for one with a score without a softmax.
inline void require_weights(const ModelConfig& model) {
  require_heads(model);
  require<ConfigError>(
      kind_of(model.attention.score).softmax,
      "scores of heads require attention weights that sum to 1, which model.attention.score {} has not; `thimble ablate` and `thimble patch` measure its heads",
      kind_of(model.attention.score).name);
}

}  // namespace thimble
