#include "thimble/inspect/place.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace thimble {

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
