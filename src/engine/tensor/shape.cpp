#include "thimble/engine/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "thimble/engine/error.h"

namespace thimble {

Shape::Shape(std::initializer_list<std::int64_t> sizes) : rank_(static_cast<int>(sizes.size())) {
  require<ShapeError>(rank_ <= kMaxRank, "shape: {} dimensions, at most {} are supported", rank_, kMaxRank);
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  require<ShapeError>(std::all_of(sizes.begin(), sizes.end(), [](auto n) { return n >= 0; }),
                      "shape: {} has a negative dimension", str());
}

std::int64_t Shape::elements() const {
  std::int64_t n = 1;
  for (int d = 0; d < rank_; ++d) n *= sizes_[d];
  return n;
}

Shape Shape::with_last(std::int64_t size) const {
  require<ShapeError>(rank_ > 0, "shape: () has no last dimension to replace");
  Shape result = *this;
  result.sizes_[rank_ - 1] = size;
  return result;
}

Shape Shape::appended(std::int64_t size) const {
  require<ShapeError>(rank_ < kMaxRank && size >= 0, "shape: cannot append {} to {}", size, *this);
  Shape result = *this;
  result.sizes_[result.rank_++] = size;
  return result;
}

std::string Shape::str() const {
  return fmt::format("({})", fmt::join(sizes_.begin(), sizes_.begin() + rank_, ", "));
}

}  // namespace thimble
