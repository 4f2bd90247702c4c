// Outputs that a model generates, one token after another.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "thimble/engine/model.h"
#include "thimble/train/dataset.h"
#include "thimble/train/generation.h"

namespace thimble {

// Receives the tokens of the first output so far.
using OnTokens = std::function<void(std::span<const std::int32_t>)>;

inline namespace THIMBLE_PRECISION {

// Returns what the model generates from the batch's source, or after its tokens if there is no source. Throws
// NumericError when its logits are not finite, and ConfigError for more tokens than it can write.
std::vector<Hypothesis> hypotheses(const Model&, const Dataset&, Batch, const Generation&, const OnTokens&);

// Draws texts from a model of task text: kSampledDocuments from their start, or the window of a stream that follows
// a line break, or the first token of a vocabulary without one. Throws as hypotheses().
std::vector<Hypothesis> draw_texts(const Model&, const Dataset&, std::uint64_t seed);

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
