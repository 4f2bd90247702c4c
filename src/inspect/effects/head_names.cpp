#include "inspect/effects/head_names.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "thimble/engine/error.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

// Returns "0.0 to 0.7, 1.0 to 1.7".
std::string all_names(std::span<const AttentionLayer> layers) {
  std::vector<std::string> ranges;
  for (std::int64_t l = 0; l < std::ssize(layers); ++l) {
    const std::int64_t last = layers[static_cast<std::size_t>(l)].heads - 1;
    ranges.push_back(head_name(layers, {l, 0}));
    if (last > 0) ranges.back() += " to " + head_name(layers, {l, last});
  }
  return fmt::format("{}", fmt::join(ranges, ", "));
}

}  // namespace

std::string head_name(std::span<const AttentionLayer> layers, HeadId id) {
  return layers[static_cast<std::size_t>(id.layer)].head_name(id.head);
}

Json head_json(HeadId id, const std::string& attention) {
  return {{"layer", id.layer}, {"head", id.head}, {"name", id.name(attention)}};
}

Json head_json(std::span<const AttentionLayer> layers, HeadId id) {
  return {{"layer", id.layer}, {"head", id.head}, {"name", head_name(layers, id)}};
}

std::vector<HeadId> parse_heads(std::string_view list, std::span<const AttentionLayer> layers) {
  std::vector<HeadId> heads;
  for (const std::string_view part : split_at(',', list)) {
    std::string name(part);
    name.erase(name.find_last_not_of(' ') + 1);
    name.erase(0, name.find_first_not_of(' '));
    const auto matches = [&](const std::string& head) {
      return ::fnmatch(name.c_str(), head.c_str(), FNM_NOESCAPE) == 0;
    };
    const std::size_t found = heads.size();
    for (std::int64_t l = 0; l < std::ssize(layers); ++l) {
      const AttentionLayer& layer = layers[static_cast<std::size_t>(l)];
      for (std::int64_t h = 0; h < layer.heads; ++h)
        if (matches(layer.head_name(h)) || matches(HeadId{l, h}.name(layer.name()))) heads.push_back({l, h});
    }
    require<ConfigError>(heads.size() > found, "there is no head \"{}\"; the model has {}", printable(name),
                         all_names(layers));
  }
  std::ranges::sort(heads);
  const auto twice = std::ranges::adjacent_find(heads);
  require<ConfigError>(twice == heads.end(), "head {} is given twice; name each head once",
                       twice == heads.end() ? "" : head_name(layers, *twice));
  return heads;
}

}  // namespace thimble
