// Which keys a query attends to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "thimble/engine/real.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

// The keys that each query attends to, always the first ones, and ALiBi.
struct AttentionMask {
  bool causal = false;                    // query i attends to keys 0 .. first_query + i
  std::span<const std::int32_t> lengths;  // (B) keys of each sequence, the rest is padding; empty: no padding
  std::int64_t first_query = 0;           // position of query 0 among the keys
  // (H) ALiBi (Press et al. 2022): slopes[h] times the distance of query and key is subtracted from the
  // score.
  std::span<const Real> slopes = {};

  // Returns the number of keys that a query attends to.
  std::int64_t visible(std::int64_t sequence, std::int64_t query, std::int64_t keys) const {
    if (causal) keys = std::min(keys, first_query + query + 1);
    if (!lengths.empty()) keys = std::min<std::int64_t>(keys, lengths[static_cast<std::size_t>(sequence)]);
    return keys;
  }
};

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
