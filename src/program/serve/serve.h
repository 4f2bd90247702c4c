// The protocol of `thimble serve`, docs/serve.md: a request is read, answered by the model's arrays, and replied to.
#pragma once

#include "thimble/train/run.h"

namespace thimble {

// Answers the requests for a model, `trained` or as its training began, of a descriptor on another one until they end or one of them is "close". Throws FileError, after a
// reply, when the place of the next request is not known, and when a descriptor cannot be read or written.
void serve(const ModelSource& model, bool trained, int requests, int replies);

}  // namespace thimble
