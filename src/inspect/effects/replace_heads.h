// Replacement of head outputs, by those of other sequences or by numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "thimble/engine/attention_layer.h"
#include "train/step/chunk_hooks.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// The outputs of a layer's heads, H Dv values, for a sequence of the split at a position.
struct HeadRow {
  std::int64_t layer, sequence, position;
  const Real* values;
};

// Returns what replaces such a row: another one, or the same values to leave it, or null for zeros.
using Substitute = std::function<const Real*(const HeadRow&)>;

// Returns hooks that replace z_h of these heads by the same columns of the substitute, or of zeros without one. The
// layers must outlive the hooks.
std::unique_ptr<Replace> replace_heads(std::span<const AttentionLayer> layers, std::span<const HeadId> heads,
                                       Substitute substitute = {});

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
