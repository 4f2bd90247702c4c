// Activation patching; see PatchingReport.
#pragma once

#include <cstdint>

#include "thimble/inspect/effects/effects.h"
#include "thimble/train/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// Patches head outputs of the donor sequence into the base sequence, both of the evaluator's split. Throws
// ShapeError when there is no such sequence, and DataError when their lengths or the positions of their
// labels differ, when all labels are equal, or when the model gives both the same logits.
PatchingReport patching(const Evaluator& evaluator, std::int64_t base, std::int64_t donor);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
