#include "inspect/effects/replace_heads.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace thimble {
inline namespace THIMBLE_PRECISION {

std::unique_ptr<Replace> replace_heads(std::span<const AttentionLayer> layers, std::span<const HeadId> heads,
                                       Substitute substitute) {
  const std::vector<HeadId> set(heads.begin(), heads.end());
  const auto has_heads = [set](Site site) {
    return site.kind == SiteKind::head_output &&
           std::ranges::any_of(set, [&](HeadId head) { return head.layer == site.layer; });
  };
  const auto source = [layers, set, substitute = std::move(substitute)](
                          std::int64_t first, Site site, const Shape& shape, MatrixView value) {
    const std::int64_t width = layers[static_cast<std::size_t>(site.layer)].d_value;
    std::int64_t replaced = 0;
    for (const HeadId& head : set) {
      if (head.layer != site.layer) continue;
      for (std::int64_t row = 0; row < value.rows; ++row) {
        const HeadRow own{site.layer, first + row / shape[1], site.position + row % shape[1], value.row(row)};
        const Real* from = substitute ? substitute(own) : nullptr;
        if (from == own.values) continue;
        Real* to = value.row(row) + head.head * width;
        from != nullptr ? std::copy_n(from + head.head * width, width, to) : std::fill_n(to, width, Real{0});
        ++replaced;
      }
    }
    return replaced;
  };
  return std::make_unique<Replace>(has_heads, source);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
