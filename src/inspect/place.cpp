#include "thimble/inspect/place.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace thimble {

std::vector<Place> places(const ModelConfig& model) {
  const bool pair = model.kind == ModelKind::encoder_decoder;
  std::vector<Place> all;
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

std::string title(const Place& place) {
  return fmt::format("{} {}", place.name.empty() ? "layer" : place.name, place.layer);
}

nlohmann::ordered_json to_json(std::span<const Place> all) {
  const auto sequence = [](bool source) { return source ? "source" : "tokens"; };
  auto list = nlohmann::ordered_json::array();
  for (const Place& place : all)
    list.push_back({{"name", place.name},
                    {"layer", place.layer},
                    {"queries", sequence(place.queries_source)},
                    {"keys", sequence(place.keys_source)},
                    {"causal", place.causal}});
  return list;
}

}  // namespace thimble
