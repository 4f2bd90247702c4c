#include "inspect/whole_weights.h"

#include <algorithm>

namespace thimble::inline THIMBLE_PRECISION {

std::optional<WholeWeights::Seen> WholeWeights::observe(std::string_view site, const Shape& shape,
                                                        ConstMatrixView value) {
  for (std::size_t p = 0; p < attentions_.size(); ++p) {
    const std::optional<std::int64_t> first = position_of(site, attentions_[p].weights_site);
    if (!first) continue;
    const std::int64_t queries = attentions_[p].queries_source ? batch_->source_length : batch_->length;
    if (shape[2] == queries) return Seen{p, shape, value};
    const Shape whole{shape[0], shape[1], queries, shape[3]};
    if (gathered_.shape() != whole) gathered_ = Tensor(whole);
    for (std::int64_t row = 0; row < value.rows; ++row)
      std::copy_n(value.row(row), value.cols,
                  gathered_.matrix().row(row / shape[2] * queries + *first + row % shape[2]));
    if (*first + shape[2] < queries) return std::nullopt;
    return Seen{p, whole, std::as_const(gathered_).matrix()};
  }
  return std::nullopt;
}

}  // namespace thimble::inline THIMBLE_PRECISION
