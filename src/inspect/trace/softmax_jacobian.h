// How much of a gradient the softmax of attention lets through.
#pragma once

#include <cstdint>

#include "thimble/train/json.h"

namespace thimble {

struct ModelSource;

// Returns {"at_init", "trained"}, the mean Frobenius norm of the Jacobian diag(p) - p p^T of the softmax,
// where p are the attention weights of a query: over all layers, heads and queries of the first test
// sequences, with the initial values of the config's seed and with the model's weights. 0: saturated, on one
// key; sqrt(n-1) / n for n equal weights. Throws as trace_split does.
Json softmax_jacobian(const ModelSource& model, std::int64_t sequences);

}  // namespace thimble
