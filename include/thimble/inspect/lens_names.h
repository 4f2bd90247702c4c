// Results of the logit lens (nostalgebraist, "Interpreting GPT: the logit lens", 2020): the final norm and the
// output, applied to the residual stream after the embedding and after each block of an encoder, or of the
// decoder of an encoder-decoder.
#pragma once

#include <string>
#include <vector>

#include "thimble/engine/model_config.h"
#include "thimble/train/json.h"

namespace thimble {

// The result of the lens at one depth; that after the last block is the model's own.
struct LensResult {
  std::string after;  // "embedding", "layer 0", or "decoder.0"
  double loss = 0, accuracy = 0;
};

// Returns why a model has no lens: a recurrent one. Empty when it has.
std::string logit_lens_unavailable(const ModelConfig& model);

// Returns the names of the depths, from "embedding" on; empty for a model without a lens.
std::vector<std::string> lens_names(const ModelConfig& model);

// Returns {"available", "layers": [{"after", "loss", "accuracy"}]}, or the reason.
Json to_json(const std::vector<LensResult>& results, const ModelConfig& model);

}  // namespace thimble
