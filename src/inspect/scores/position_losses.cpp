#include "inspect/scores/position_losses.h"

#include <limits>

#include "engine/kernels/cross_entropy.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// value: logits (B T, V)
void PositionLosses::observe(Site site, const Shape&, ConstMatrixView value) {
  if (site.kind != SiteKind::logits) return;
  for (std::int64_t row = 0; row < value.rows; ++row) {
    const std::int32_t label = batch_->labels[static_cast<std::size_t>(row)];
    if (label == kIgnore) continue;
    PositionLoss& sum = sums_[static_cast<std::size_t>(row % batch_->length)];
    sum.loss += kernels::cross_entropy_forward(dlogits_.matrix(), value.row_block(row, 1),
                                               std::span(&label, 1), 0, 1);
    ++sum.labels;
  }
}

std::vector<PositionLoss> PositionLosses::means() const {
  std::vector<PositionLoss> means = sums_;
  for (PositionLoss& mean : means)
    mean.loss = mean.labels > 0 ? mean.loss / static_cast<double>(mean.labels)
                                : std::numeric_limits<double>::quiet_NaN();
  return means;
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
