#include "config/nearest.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "thimble/core/nearest.h"

namespace thimble::config {

std::string nearest_path(const std::string& parent, std::string_view key, const std::vector<Named>& all) {
  // One of the same section first; among equally similar keys, the one nearest in the tree.
  const auto rank = [&](const Named& named) {
    const auto [split, _] = std::mismatch(parent.begin(), parent.end(), named.path.begin(), named.path.end());
    const double similar = similarity(key, named.field->key);
    const bool here = named.path == parent + std::string(named.field->key);
    return std::tuple(here && similar >= kSimilarEnough, similar, split - parent.begin(),
                      -std::count(named.path.begin(), named.path.end(), '.'));
  };
  const auto best = std::max_element(all.begin(), all.end(),
                                     [&](const Named& a, const Named& b) { return rank(a) < rank(b); });
  return similarity(key, best->field->key) >= kSimilarEnough ? best->path : "";
}

}  // namespace thimble::config
