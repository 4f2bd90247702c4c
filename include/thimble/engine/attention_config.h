// The config of attention.
#pragma once

#include <cstdint>

#include "thimble/engine/attention_sizes.h"
#include "thimble/engine/rotary_config.h"
#include "thimble/engine/score_kind.h"

namespace thimble {

enum class Mask { none, causal };
enum class Combine { concat, sum };
enum class Positions { sinusoidal, learned, none, rotary, alibi };

// The config of attention, where 0 stands for a default.
struct AttentionConfig {
  Mask mask = Mask::none;
  double dropout = 0;  // of the attention weights, in [0, 1)
  Score score = Score::scaled_dot;
  Combine combine = Combine::concat;    // sum: adds up one output projection per head
  bool in_proj = true;                  // false: queries, keys and values are the input
  double in_proj_std = 0;               // standard deviation of initial projections; 0: as PyTorch
  bool tie_query_key = false;           // one projection for queries and keys; requires kv_heads = heads
  std::int64_t kv_heads = 0;            // heads of keys and values; 0: as many as of queries
  std::int64_t d_key = 0, d_value = 0;  // of a head; 0: d_model / heads
  RotaryConfig rotary{};                // of rotary positions
};

// Returns the sizes of a config, with defaults filled in; heads > 0.
inline AttentionSizes resolve(const AttentionConfig& config, std::int64_t d_model, std::int64_t heads) {
  return {.heads = heads,
          .kv_heads = config.kv_heads > 0 ? config.kv_heads : heads,
          .d_key = config.d_key > 0 ? config.d_key : d_model / heads,
          .d_value = config.d_value > 0 ? config.d_value : d_model / heads,
          .softmax = kind_of(config.score).softmax};
}

}  // namespace thimble
