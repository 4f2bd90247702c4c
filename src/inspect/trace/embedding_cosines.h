// How similar the embeddings of tokens are.
#pragma once

#include "thimble/train/json.h"

namespace thimble {

struct ModelSource;

// Returns {token: {token: cosine}} of the rows of token_embedding.weight, for every pair of tokens of the
// vocabulary; a cosine with a row of zeros is 0. Throws CheckpointError when the file has no such tensor.
Json embedding_cosines(const ModelSource& model);

}  // namespace thimble
