#include "thimble/model/place.h"

namespace thimble {

std::vector<Place> places(const ModelConfig& model) {
  std::vector<Place> all;
  if (model.kind == ModelKind::recurrent) {
    if (model.attention.score != Score::none) all.push_back({.name = "cross", .keys_source = true});
    return all;
  }
  if (model.mixer != Mixer::attention) return all;
  const bool pair = model.kind == ModelKind::encoder_decoder;
  for (std::int64_t l = 0; l < model.layers; ++l)
    all.push_back({.name = pair ? "encoder" : "",
                   .layer = l,
                   .queries_source = pair,
                   .keys_source = pair,
                   .causal = model.attention.mask == Mask::causal});
  for (std::int64_t l = 0; pair && l < model.layers; ++l) {
    all.push_back({.name = "decoder", .layer = l, .causal = true});
    all.push_back({.name = "cross", .layer = l, .keys_source = true});
  }
  return all;
}

}  // namespace thimble
