#include "inspect/effects/head_names.h"

#include <fmt/ranges.h>

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
  const AttentionLayer& layer = layers[static_cast<std::size_t>(id.layer)];
  return layer.stack.empty() ? fmt::format("{}.{}", layer.index, id.head)
                             : fmt::format("{}.{}", layer.name(), id.head);
}

std::vector<HeadId> parse_heads(std::string_view list, std::span<const AttentionLayer> layers) {
  std::vector<HeadId> heads;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    std::string_view name = list.substr(start, end - start);
    start = end + 1;
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    const std::size_t found = heads.size();
    for (std::int64_t l = 0; l < std::ssize(layers); ++l) {
      const AttentionLayer& layer = layers[static_cast<std::size_t>(l)];
      for (std::int64_t h = 0; h < layer.heads; ++h)
        if (name == head_name(layers, {l, h}) || name == fmt::format("{}.{}", layer.name(), h))
          heads.push_back({l, h});
    }
    require<ConfigError>(heads.size() > found, "there is no head \"{}\"; the model has {}", printable(name),
                         all_names(layers));
    require<ConfigError>(std::ranges::count(heads, heads.back()) == 1,
                         "head {} is given twice; name each head once", printable(name));
  }
  std::ranges::sort(heads);
  return heads;
}

}  // namespace thimble
