// The sizes of an attention.
#pragma once

#include <cstdint>

namespace thimble {

// The sizes of an attention, for kernels, ops, modules and reports.
struct AttentionSizes {
  std::int64_t heads = 1;                         // H, of queries
  std::int64_t kv_heads = 1;                      // KV, of keys and values; divides H
  std::int64_t d_key = 1;                         // Dk, columns of a head's queries and keys
  std::int64_t d_value = 1;                       // Dv, columns of a head's values
  bool softmax = true;                            // makes weights of the scores; false: scores are weights
  std::int64_t batch = 0, queries = 0, keys = 0;  // B, Tq, Tk of one call; a module has none

  std::int64_t heads_per_kv_head() const { return heads / kv_heads; }
};

}  // namespace thimble
