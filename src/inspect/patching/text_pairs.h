// Pairs of the user's own texts, whose labels are the model's answers to them.
#pragma once

#include <span>
#include <vector>

#include "inspect/patching/pairs.h"
#include "thimble/inspect/patch.h"

namespace thimble {

struct ModelSource;

inline namespace THIMBLE_PRECISION {

// Returns a batch for each pair. Throws DataError, with TextPair::where, when a text is not an input of the model, when two
// have different lengths, or answers of different lengths, and when a position is outside.
std::vector<PairBatch> text_pairs(Evaluator& evaluator, const ModelSource& model,
                                  std::span<const TextPair> pairs);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
