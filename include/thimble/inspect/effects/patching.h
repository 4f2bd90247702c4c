// Activation patching; effects.h says what is measured.
#pragma once

#include <cstdint>

#include "thimble/inspect/effects/effects.h"
#include "thimble/train/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

// From the source sequence into the base sequence, both of the evaluator's split. Throws ShapeError when
// there is no such sequence, and DataError when their lengths or the positions of their labels differ, when
// no label does, or when the model's logits do not tell them apart.
PatchingReport patching(const Evaluator& evaluator, std::int64_t base, std::int64_t source);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
