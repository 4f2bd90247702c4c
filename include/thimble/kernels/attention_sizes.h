// The sizes that all kernels of attention take.
#pragma once

#include <cstdint>

#include "thimble/core/real.h"

namespace thimble::inline THIMBLE_PRECISION::kernels {

struct AttentionSizes {
  std::int64_t batch;     // B
  std::int64_t queries;   // Tq
  std::int64_t keys;      // Tk
  std::int64_t heads;     // H
  std::int64_t kv_heads;  // KV, of keys and values; divides H

  std::int64_t heads_per_kv_head() const { return heads / kv_heads; }
};

}  // namespace thimble::inline THIMBLE_PRECISION::kernels
