#include "train/step/chunk_hooks.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

std::int64_t Chunk::first_in(const Tensor& x) const { return x.shape()[0] == batch.sequences ? 0 : first; }

void Capture::observe(Site site, const Shape& shape, ConstMatrixView value) {
  const auto [first, last] = sites_.equal_range(site.start());
  for (auto found = first; found != last; ++found) {
    Tensor& all = *found->second;
    const std::int64_t time = all.shape()[1], first_sequence = chunk_ == nullptr ? 0 : chunk_->first_in(all);
    for (std::int64_t row = 0; row < value.rows; ++row)
      std::copy_n(
          value.row(row), value.cols,
          all.matrix().row((first_sequence + row / shape[1]) * time + site.position + row % shape[1]));
  }
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
