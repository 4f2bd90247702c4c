#include "inspect/scores/whole_weights.h"

#include <algorithm>

namespace thimble {
inline namespace THIMBLE_PRECISION {

std::optional<WholeWeights::LayerWeights> WholeWeights::observe(Site site, const Shape& shape,
                                                                ConstMatrixView value) {
  if (site.kind != SiteKind::attention_weights) return std::nullopt;
  const auto layer = static_cast<std::size_t>(site.layer);
  const std::int64_t queries = layers_[layer].queries_source ? batch_->source_length : batch_->length;
  if (shape[2] == queries) return LayerWeights{layer, shape, value};
  const Shape whole{shape[0], shape[1], queries, shape[3]};
  if (gathered_.shape() != whole) gathered_ = Tensor(whole);
  for (std::int64_t row = 0; row < value.rows; ++row)
    std::copy_n(value.row(row), value.cols,
                gathered_.matrix().row(row / shape[2] * queries + site.position + row % shape[2]));
  if (site.position + shape[2] < queries) return std::nullopt;
  return LayerWeights{layer, whole, std::as_const(gathered_).matrix()};
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
