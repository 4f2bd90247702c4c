#include "thimble/inspect/place.h"
#include "thimble/core/json.h"

#include <fmt/format.h>

namespace thimble {

std::string title(const Place& place) {
  return fmt::format("{} {}", place.name.empty() ? "layer" : place.name, place.layer);
}

Json to_json(std::span<const Place> all) {
  const auto sequence = [](bool source) { return source ? "source" : "tokens"; };
  auto list = Json::array();
  for (const Place& place : all)
    list.push_back({{"name", place.name},
                    {"layer", place.layer},
                    {"queries", sequence(place.queries_source)},
                    {"keys", sequence(place.keys_source)},
                    {"causal", place.causal}});
  return list;
}

}  // namespace thimble
