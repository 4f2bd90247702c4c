// The protocol of `thimble serve`, docs/serve.md: a request is read, answered by the model's arrays, and replied to.
#pragma once

#include "thimble/train/run.h"

namespace thimble {

// Answers the requests of one descriptor on another, for a model that is `trained` or as its training began, until they
// end or one of them is "close". Throws FileError when a descriptor cannot be read or written, and, after a reply, when
// the place of the next request is not known.
void serve(const ModelSource& model, bool trained, int requests, int replies);

}  // namespace thimble
