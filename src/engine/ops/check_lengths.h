// The check of lengths that ops have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "thimble/engine/error.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Throws ShapeError unless there are no lengths, or `batch` of them, each min .. max.
inline void check_lengths(const char* op, std::span<const std::int32_t> lengths, std::int64_t batch,
                          std::int64_t min, std::int64_t max) {
  require<ShapeError>(lengths.empty() || std::ssize(lengths) == batch, "{}: {} lengths for a batch of {}", op,
                      lengths.size(), batch);
  const auto bad = std::ranges::find_if(lengths, [=](auto n) { return n < min || n > max; });
  require<ShapeError>(bad == lengths.end(), "{}: length {} of sequence {} must be {} .. {}", op,
                      bad == lengths.end() ? 0 : *bad, bad - lengths.begin(), min, max);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
